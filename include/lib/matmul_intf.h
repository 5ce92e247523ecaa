/*
 * matmul_intf.h - the Matmul object needs the cube unit, which Doppel does not have yet: including this header is fine, making
 * a Matmul is one clear compile error.
 */
#ifndef DOPPEL_LIB_MATMUL_INTF_H
#define DOPPEL_LIB_MATMUL_INTF_H

#include "kernel_operator.h"

enum class CubeFormat { ND, NZ };
enum class LayoutMode { NONE };

namespace matmul {

template <AscendC::TPosition POSITION, CubeFormat FORMAT, typename TYPE, bool ISTRANS = false,
          LayoutMode LAYOUT = LayoutMode::NONE, bool IBSHARE = false>
struct MatmulType {};

template <class A, class B, class C, class... More>
class Matmul {
    static_assert(AscendC::dp_never<A>, "Matmul needs the cube unit, which Doppel does not implement yet");
};

} // namespace matmul

namespace AscendC {
using matmul::Matmul;
using matmul::MatmulType;
}

#define REGIST_MATMUL_OBJ(...) static_assert(false, "Matmul needs the cube unit, which Doppel does not implement yet")

#endif
