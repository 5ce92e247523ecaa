# Headers, entry points and the documentation table of operators, from their register.
# In the folder of the target that compiles them: CMake wants the rule there.
find_program(AWK NAMES awk mawk gawk REQUIRED)
add_custom_command(OUTPUT ${DOPPEL_GENERATED_DIR}/aclnn_glue.c ${DOPPEL_GENERATED_DIR}/aclnn_callers.inc
                          ${PROJECT_BINARY_DIR}/docs/operators.md
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${DOPPEL_GENERATED_DIR}/include/aclnnop
  COMMAND ${CMAKE_COMMAND} -E make_directory ${DOPPEL_GENERATED_DIR}/include/aclnnop ${PROJECT_BINARY_DIR}/docs
  COMMAND ${AWK} -v out=${DOPPEL_GENERATED_DIR} -f ${PROJECT_SOURCE_DIR}/src/ops/gen/aclnn.awk
          ${PROJECT_SOURCE_DIR}/src/ops/signatures.tsv
  COMMAND ${CMAKE_COMMAND} -E copy ${DOPPEL_GENERATED_DIR}/operators.md ${PROJECT_BINARY_DIR}/docs/operators.md
  DEPENDS ${PROJECT_SOURCE_DIR}/src/ops/signatures.tsv ${PROJECT_SOURCE_DIR}/src/ops/gen/aclnn.awk
  COMMENT "Operators from their register" VERBATIM)

# Operator types, from theirs.
add_custom_command(OUTPUT ${DOPPEL_GENERATED_DIR}/aclop_types.c ${DOPPEL_GENERATED_DIR}/aclop_types.inc
                          ${PROJECT_BINARY_DIR}/docs/aclop-types.md
  COMMAND ${CMAKE_COMMAND} -E make_directory ${DOPPEL_GENERATED_DIR} ${PROJECT_BINARY_DIR}/docs
  COMMAND ${AWK} -v out=${DOPPEL_GENERATED_DIR} -f ${PROJECT_SOURCE_DIR}/src/ops/gen/aclop.awk
          ${PROJECT_SOURCE_DIR}/src/ops/aclop.tsv
  COMMAND ${CMAKE_COMMAND} -E copy ${DOPPEL_GENERATED_DIR}/aclop-types.md ${PROJECT_BINARY_DIR}/docs/aclop-types.md
  DEPENDS ${PROJECT_SOURCE_DIR}/src/ops/aclop.tsv ${PROJECT_SOURCE_DIR}/src/ops/gen/aclop.awk
  COMMENT "Operator types from their register" VERBATIM)

# The same types, and those that only graphs have, as C++ classes.
set(all_ops ${DOPPEL_GENERATED_DIR}/include/op_proto/built-in/inc/all_ops.h)
add_custom_command(OUTPUT ${all_ops}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${DOPPEL_GENERATED_DIR}/include/op_proto/built-in/inc
  COMMAND ${AWK} -f ${PROJECT_SOURCE_DIR}/src/api/ge/classes.awk ${PROJECT_SOURCE_DIR}/src/ops/aclop.tsv
          ${PROJECT_SOURCE_DIR}/src/api/ge/types.tsv > ${all_ops}
  DEPENDS ${PROJECT_SOURCE_DIR}/src/ops/aclop.tsv ${PROJECT_SOURCE_DIR}/src/api/ge/types.tsv
          ${PROJECT_SOURCE_DIR}/src/api/ge/classes.awk
  COMMENT "Classes of operators from their register" VERBATIM)
