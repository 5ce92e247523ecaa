#include "doppel.h"
int doppel_compare(int argc, char **argv) { (void)argc; (void)argv; return 1; }
