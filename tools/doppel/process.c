#include "doppel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child. exec's errno goes through the pipe, so that the parent can say why. */
static void start(char **argv, int report) {
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    execvp(argv[0], argv);
    int error = errno;
    ssize_t ignored = write(report, &error, sizeof error);
    (void)ignored;
    _exit(DOPPEL_NOT_FOUND);
}

static int wait_for(pid_t child, int *out_signal) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return DOPPEL_NOT_FOUND;
    }
    if (WIFSIGNALED(status)) {
        *out_signal = WTERMSIG(status);
        return DOPPEL_SIGNAL_BASE + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
}

/* What people mean when they name something that cannot be started. */
static const char *hint(const char *program) {
    static const char *const sources[] = {".asc", ".cpp", ".cc", ".cxx", ".c"};
    const char *dot = strrchr(program, '.');
    for (unsigned i = 0; dot && i < sizeof sources / sizeof sources[0]; i++)
        if (strcmp(dot, sources[i]) == 0)
            return "; this is a source file: build it with ascc and name the program";
    if (!strchr(program, '/') && access(program, X_OK) == 0)
        return "; a program of this folder needs ./ before its name";
    return "";
}

int doppel_start(const char *command, char **argv, int *out_signal) {
    int report[2], error = 0;
    *out_signal = 0;
    if (pipe2(report, O_CLOEXEC) != 0) {
        fprintf(stderr, "%s: no pipe: %s\n", command, strerror(errno));
        return DOPPEL_NOT_FOUND;
    }
    void (*old_int)(int) = signal(SIGINT, SIG_IGN);
    void (*old_quit)(int) = signal(SIGQUIT, SIG_IGN);
    pid_t child = fork();
    if (child == 0)
        start(argv, report[1]);
    close(report[1]);
    int status = DOPPEL_NOT_FOUND;
    if (child < 0)
        fprintf(stderr, "%s: cannot start a process: %s\n", command, strerror(errno));
    else if (read(report[0], &error, sizeof error) == (ssize_t)sizeof error) {
        wait_for(child, out_signal);
        fprintf(stderr, "%s: cannot run %s: %s%s\n", command, argv[0], strerror(error), hint(argv[0]));
        status = error == ENOENT ? DOPPEL_NOT_FOUND : DOPPEL_NOT_EXECUTABLE;
    } else {
        status = wait_for(child, out_signal);
    }
    close(report[0]);
    signal(SIGINT, old_int);
    signal(SIGQUIT, old_quit);
    return status;
}

bool doppel_scratch_create(const char *command, char *out_path, unsigned path_bytes) {
    const char *base = getenv("TMPDIR");
    int n = snprintf(out_path, path_bytes, "%s/doppel-XXXXXX", base && *base ? base : "/tmp");
    if (n < 0 || (unsigned)n >= path_bytes || !mkdtemp(out_path)) {
        fprintf(stderr, "%s: cannot make a directory for the report (%s): %s\n", command, out_path, strerror(errno));
        return false;
    }
    return true;
}

void doppel_scratch_remove(const char *path) {
    DIR *dir = opendir(path);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char file[PATH_MAX];
        int n = snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.' && n > 0 && (size_t)n < sizeof file)
            unlink(file);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}
