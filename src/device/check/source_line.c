/* From a return address in the program to its source line, with libdw where it was there at build time. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/check/state.h"

#ifdef DOPPEL_HAVE_LIBDW
#include <elfutils/libdwfl.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* libdw is not thread-safe */
static Dwfl *session;

static Dwfl *open_session(void) {
    static char *no_debug_path = NULL;
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_linux_proc_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .debuginfo_path = &no_debug_path,
    };
    Dwfl *dwfl = dwfl_begin(&callbacks);
    if (!dwfl)
        return NULL;
    if (dwfl_linux_proc_report(dwfl, getpid()) != 0 || dwfl_report_end(dwfl, NULL, NULL) != 0) {
        dwfl_end(dwfl);
        return NULL;
    }
    return dwfl;
}

static bool line_of(uintptr_t address, dp_loc *out_loc) {
    Dwfl_Module *module = dwfl_addrmodule(session, address);
    Dwfl_Line *line = module ? dwfl_module_getsrc(module, address) : NULL;
    int number = 0;
    const char *file = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
    if (!file || number <= 0)
        return false;
    *out_loc = (dp_loc){file, (uint32_t)number}; /* the string lives as long as the session: for ever */
    return true;
}

static bool find_line(uintptr_t address, dp_loc *out_loc) {
    pthread_mutex_lock(&lock);
    if (!session)
        session = open_session();
    bool found = session && line_of(address, out_loc);
    if (session && !found && !dwfl_addrmodule(session, address)) { /* a library loaded since */
        Dwfl *fresh = open_session();
        if (fresh) {
            session = fresh; /* the old one keeps the strings handed out */
            found = line_of(address, out_loc);
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}
#else
static bool find_line(uintptr_t address, dp_loc *out_loc) {
    (void)address, (void)out_loc;
    return false;
}
#endif

bool dp_source_line(const void *return_address, dp_loc *out_loc, char *text, size_t text_bytes) {
    text[0] = '\0';
    if (!return_address)
        return false;
    uintptr_t call = (uintptr_t)return_address - 1; /* inside the call instruction */
    if (find_line(call, out_loc))
        return true;
    Dl_info info;
    if (!dladdr((const void *)call, &info) || !info.dli_fname) {
        snprintf(text, text_bytes, "%p", return_address);
        return false;
    }
    const char *module = strrchr(info.dli_fname, '/');
    module = module ? module + 1 : info.dli_fname;
    if (info.dli_sname)
        snprintf(text, text_bytes, "%s+0x%" PRIxPTR " in %s", info.dli_sname, call - (uintptr_t)info.dli_saddr, module);
    else
        snprintf(text, text_bytes, "%s+0x%" PRIxPTR, module, call - (uintptr_t)info.dli_fbase);
    return false;
}
