# Testers of vector instructions; they share insn_rig.
dp_test(device_insn_vector SOURCES insn_vector_test.c insn_rig.c TIMEOUT 240)
dp_test(device_insn_reduce SOURCES insn_reduce_test.c insn_rig.c TIMEOUT 240)
dp_test(device_insn_select SOURCES insn_select_test.c insn_rig.c TIMEOUT 240)
dp_test(device_insn_fault SOURCES insn_fault_test.c insn_rig.c)
dp_test(device_insn_face SOURCES insn_face_test.cpp insn_capture.c)
