/*
 * doppel.h - what the subcommands of `doppel` share.
 */
#ifndef DOPPEL_TOOLS_DOPPEL_H
#define DOPPEL_TOOLS_DOPPEL_H

#include <stdbool.h>

/* One subcommand: argv[0] is its name. Returns the exit status. */
int doppel_check(int argc, char **argv);
int doppel_trace(int argc, char **argv);
int doppel_run(int argc, char **argv);
int doppel_bench(int argc, char **argv);
int doppel_profile(int argc, char **argv);
int doppel_compare(int argc, char **argv);

/* Statuses as shells use them. */
enum { DOPPEL_USAGE = 2, DOPPEL_NOT_EXECUTABLE = 126, DOPPEL_NOT_FOUND = 127, DOPPEL_SIGNAL_BASE = 128 };

/*
 * Runs a program with the present environment and waits for it; SIGINT and SIGQUIT go to the program only. Returns its exit
 * status, 128 + n when signal n ended it, 126 or 127 when it could not be started (said on stderr under the name `command`).
 * *out_signal is the signal, else 0.
 */
int doppel_start(const char *command, char **argv, int *out_signal);

/*
 * Options with a value, at argv[*at]; *at moves to the value. NULL or false, said on stderr under the name `command`, when it is
 * missing or no number from least to most.
 */
const char *doppel_value(const char *command, int argc, char **argv, int *at);
bool doppel_number(const char *command, int argc, char **argv, int *at, long least, long most, long *out);
/* An argument that is none of the options: the model. False for options and second models, said on stderr. */
bool doppel_model_argument(const char *command, const char *argument, const char **model);
bool doppel_model_needed(const char *command, const char *model);

/* A fresh directory under TMPDIR (default /tmp). False with a message. */
bool doppel_scratch_create(const char *command, char *out_path, unsigned path_bytes);
/* Removes it with the files in it. */
void doppel_scratch_remove(const char *path);

/* Draws an SVG file as PNG. False with the reason on stderr; in builds without librsvg always. */
bool doppel_draw_png(const char *command, const char *svg_path, const char *png_path);

#endif
