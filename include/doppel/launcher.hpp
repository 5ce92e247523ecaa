/*
 * launcher.hpp - what `kernel<<<blocks, x, stream>>>(args)` becomes in C++17.
 *
 *     ::dp::launch(info, "add<float>", DP_HERE, add<float>, blocks, x, stream)(args);
 *
 * The parameter types are deduced from the kernel, so arguments convert at the call exactly as in a plain call of it.
 * For a kernel that is overloaded, or whose template arguments follow from the call, the callee is a generic lambda
 * without captures that makes the call; then the arguments keep the types they have at the launch.
 *
 * A kernel with default arguments is named twice: by such a lambda, which leaves out what the launch leaves out, and for its
 * parameter types, to which the arguments that are there convert.
 *
 * Through a pointer: ::dp::launch_through("f", DP_HERE, f, blocks, x, stream)(args); for every kernel whose name a source uses as a
 * pointer, a known_kernel at its end says what it needs.
 *
 * The values between the angle brackets:
 *     blocks, x, stream   x: bytes of dynamic UB if it is an integer; a pointer (L2 control of older releases) is ignored
 *     blocks, y           y: the stream if it is a pointer, else bytes of dynamic UB on the default stream
 *     grid, block, dynamic UB, stream: thread kernels of a newer chip; accepted only if `block` is the constant 1
 *
 * A launch the runtime refuses is reported on stderr with the launching line; the stream carries the error.
 */
#ifndef DOPPEL_LAUNCHER_HPP
#define DOPPEL_LAUNCHER_HPP

#include <cstring>
#include <exception>
#include <type_traits>

#include "doppel/launch.h"

namespace dp {

/* The arguments of one launch, laid out one after the other; trivially copyable if every member is. */
template <class... T> struct launch_args;

template <> struct launch_args<> {
    template <class Callee, class... Done> void call(const Callee &callee, const Done &...done) const {
        callee(done...);
    }
};

template <class First, class... Rest> struct launch_args<First, Rest...> {
    First first;
    launch_args<Rest...> rest;

    template <class Callee, class... Done> void call(const Callee &callee, const Done &...done) const {
        rest.call(callee, done..., first);
    }
};

inline launch_args<> make_launch_args() { return {}; }

template <class First, class... Rest>
launch_args<First, Rest...> make_launch_args(const First &first, const Rest &...rest) {
    return {first, make_launch_args(rest...)};
}

/* What stands between the angle brackets. */
struct launch_config {
    uint32_t blocks;
    uint32_t dynamic_ub_bytes;
    void *stream;
};

/* Negative or huge counts become values that dp_launch_kernel refuses. */
template <class T> uint32_t launch_number(T value) {
    static_assert(std::is_integral<T>::value || std::is_enum<T>::value,
                  "the number of blocks and the size of the dynamic UB must be integers");
    if (static_cast<long long>(value) < 0) {
        return UINT32_MAX;
    }
    const auto wide = static_cast<unsigned long long>(value);
    return wide > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(wide);
}

template <class X> constexpr bool launch_is_pointer =
    std::is_pointer<std::decay_t<X>>::value || std::is_null_pointer<std::decay_t<X>>::value;

template <class Blocks, class X> launch_config make_launch_config(Blocks blocks, X x, void *stream) {
    if constexpr (launch_is_pointer<X>) {
        return {launch_number(blocks), 0, stream};
    } else {
        return {launch_number(blocks), launch_number(x), stream};
    }
}

template <class Blocks, class X> launch_config make_launch_config(Blocks blocks, X x) {
    if constexpr (launch_is_pointer<X>) {
        return {launch_number(blocks), 0, x};
    } else {
        return {launch_number(blocks), launch_number(x), nullptr};
    }
}

template <auto Block> struct thread_block {
    static_assert(Block == 1, "<<<grid, block, dynamic UB, stream>>> starts a thread kernel, which needs the SIMT cores of a "
                              "newer chip; write <<<blocks, dynamic UB, stream>>> (block = 1 is accepted)");
};

template <class Grid, auto Block, class X>
launch_config make_launch_config(Grid grid, thread_block<Block>, X x, void *stream) {
    return make_launch_config(grid, x, stream);
}

template <class Callee, class... P> struct launch_pack {
    Callee callee;
    launch_args<P...> args;
};

/* Chips know no exceptions: one that leaves the kernel ends the block with a report. */
template <class Pack> void run_block(const Pack &pack) {
#if defined(__cpp_exceptions)
    char what[256];
    what[0] = '\0';
    try {
        pack.args.call(pack.callee);
        return;
    } catch (const std::exception &exception) {
        std::strncpy(what, exception.what(), sizeof what - 1);
        what[sizeof what - 1] = '\0';
    } catch (...) {
    }
    dp_kernel_threw(what[0] ? what : nullptr); /* after the handlers, so that the exception is destroyed */
#else
    pack.args.call(pack.callee);
#endif
}

template <class Callee, class... P>
int launch_now(const dp_kernel_info &info, const launch_config &config, Callee callee, const P &...args) {
    static_assert((std::is_trivially_copyable<P>::value && ...),
                  "kernel arguments must be plain data (numbers, pointers, trivially copyable structs): they are copied "
                  "bytewise to the device");
    using pack = launch_pack<Callee, P...>;
    static_assert(alignof(pack) <= 64, "kernel arguments with an alignment over 64 bytes are not supported");
    const pack packed{callee, make_launch_args(args...)};
    const int status = dp_launch_kernel(
        &info, config.blocks, config.stream,
        [](const void *raw) {
            const auto *p = static_cast<const pack *>(raw);
            run_block(*p);
        },
        &packed, sizeof packed);
    if (status != 0)
        dp_launch_refused(&info, status);
    return status;
}

/* Launch of a kernel known by its function type. */
template <class... P> class typed_launch {
public:
    typed_launch(const dp_kernel_info &info, void (*kernel)(P...), const launch_config &config)
        : info_(info), kernel_(kernel), config_(config) {}

    void operator()(P... args) const { run(args...); }

    /* As the call, with the runtime's status. */
    int run(P... args) const {
        static_assert((!std::is_reference<P>::value && ...), "kernel parameters must not be references");
        return launch_now(info_, config_, kernel_, static_cast<std::remove_cv_t<P>>(args)...);
    }

private:
    dp_kernel_info info_;
    void (*kernel_)(P...);
    launch_config config_;
};

/* Launch through a pointer: what the kernel needs is known when it runs. */
template <class... P> class pointer_launch {
public:
    pointer_launch(const dp_kernel_info &info, void (*kernel)(P...), const launch_config &config)
        : info_(info), kernel_(kernel), config_(config) {}

    void operator()(P... args) const {
        static_assert((!std::is_reference<P>::value && ...), "kernel parameters must not be references");
        dp_kernel_info info = info_;
        const int status = dp_kernel_of_pointer(reinterpret_cast<const void *>(kernel_), info_.launch, &info);
        if (status != 0) {
            dp_launch_refused(&info_, status);
            return;
        }
        info.launch = info_.launch;
        info.dynamic_ub_bytes = info_.dynamic_ub_bytes;
        launch_now(info, config_, kernel_, static_cast<std::remove_cv_t<P>>(args)...);
    }

private:
    dp_kernel_info info_;
    void (*kernel_)(P...);
    launch_config config_;
};

/* What ascc writes for a kernel whose name is used as a pointer. */
class known_kernel {
public:
    template <class... P>
    known_kernel(void (*kernel)(P...), const dp_kernel_info *info) : node_{reinterpret_cast<const void *>(kernel), info, nullptr} {
        dp_kernel_announce(&node_);
    }
    ~known_kernel() { dp_kernel_forget(&node_); }
    known_kernel(const known_kernel &) = delete;
    known_kernel &operator=(const known_kernel &) = delete;

private:
    dp_known_kernel node_;
};

/* Launch through a generic lambda: the parameters are those of the call. */
template <class Callee> class generic_launch {
public:
    generic_launch(const dp_kernel_info &info, Callee callee, const launch_config &config)
        : info_(info), callee_(callee), config_(config) {}

    template <class... A> void operator()(A... args) const {
        static_assert(std::is_empty<Callee>::value, "the launched lambda must not capture");
        launch_now(info_, config_, callee_, args...);
    }

private:
    dp_kernel_info info_;
    Callee callee_;
    launch_config config_;
};

/* A call operator for every number of arguments from none to all of the kernel's parameters. */
template <class... T> struct launch_types {};
template <class Callee, class Given, class Rest> struct launch_prefixes;

template <class Callee, class... G> struct launch_prefixes<Callee, launch_types<G...>, launch_types<>> {
    dp_kernel_info info;
    Callee callee;
    launch_config config;

    launch_prefixes(const dp_kernel_info &i, Callee c, const launch_config &values) : info(i), callee(c), config(values) {}

    void operator()(G... args) const {
        static_assert((!std::is_reference<G>::value && ...), "kernel parameters must not be references");
        launch_now(info, config, callee, static_cast<std::remove_cv_t<G>>(args)...);
    }
};

template <class Callee, class... G, class Next, class... Rest>
struct launch_prefixes<Callee, launch_types<G...>, launch_types<Next, Rest...>>
    : launch_prefixes<Callee, launch_types<G..., Next>, launch_types<Rest...>> {
    using longer = launch_prefixes<Callee, launch_types<G..., Next>, launch_types<Rest...>>;
    using longer::operator();

    launch_prefixes(const dp_kernel_info &i, Callee c, const launch_config &values) : longer(i, c, values) {}

    void operator()(G... args) const {
        launch_now(this->info, this->config, this->callee, static_cast<std::remove_cv_t<G>>(args)...);
    }
};

template <class Callee, class... P>
using launch_defaulted = launch_prefixes<Callee, launch_types<>, launch_types<P...>>;

inline dp_kernel_info launch_info(dp_kernel_info info, const char *name, dp_loc where, const launch_config &config) {
    info.name = name;
    info.launch = where;
    info.dynamic_ub_bytes = config.dynamic_ub_bytes;
    return info;
}

template <class... P, class... Config>
typed_launch<P...> launch(const dp_kernel_info &info, const char *name, dp_loc where, void (*kernel)(P...),
                          Config... config) {
    const launch_config values = make_launch_config(config...);
    return {launch_info(info, name, where, values), kernel, values};
}

template <class... P, class... Config>
pointer_launch<P...> launch_through(const char *name, dp_loc where, void (*kernel)(P...), Config... config) {
    const launch_config values = make_launch_config(config...);
    return {launch_info(dp_kernel_info{}, name, where, values), kernel, values};
}

template <class Callee, class... Config>
generic_launch<Callee> launch_generic(const dp_kernel_info &info, const char *name, dp_loc where, Callee callee,
                                      Config... config) {
    const launch_config values = make_launch_config(config...);
    return {launch_info(info, name, where, values), callee, values};
}

template <class Callee, class... P, class... Config>
launch_defaulted<Callee, P...> launch_with_defaults(const dp_kernel_info &info, const char *name, dp_loc where, Callee callee,
                                                    void (*)(P...), Config... config) {
    const launch_config values = make_launch_config(config...);
    return {launch_info(info, name, where, values), callee, values};
}

/* `__ubuf__ float row[256];` becomes `local_array<float[256], DP_SPACE_UB> s(loc); float (&row)[256] = s.value;`. */
template <class T, dp_space Space> class local_array {
    static_assert(std::is_trivially_destructible<T>::value,
                  "a variable in core memory must be of a plain type: nothing runs its destructor");

public:
    explicit local_array(dp_loc loc) : value(*static_cast<T *>(dp_local_array_begin(Space, sizeof(T), loc))) {}
    ~local_array() { dp_local_array_end(Space, sizeof(T)); }
    local_array(const local_array &) = delete;
    local_array &operator=(const local_array &) = delete;

    T &value;
};

/* `extern __ubuf__ T buf[];` outside functions: stands for the array wherever it is used. */
template <class T> struct dynamic_ub_array {
    operator T *() const { return static_cast<T *>(dp_dynamic_ub(dp_loc{"", 0})); }
    template <class U> explicit operator U *() const { return reinterpret_cast<U *>(static_cast<T *>(*this)); }
};

} // namespace dp

/* ascc puts the descriptions of the unit's kernels here. */
#ifdef DOPPEL_ASCC
__dp_ascc_prelude__
#endif

#endif
