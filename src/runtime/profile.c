#define _GNU_SOURCE
#include "runtime/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "runtime/report.h"
#include "runtime/stream_queue.h"

enum {
    ROWS = 1024, /* names of the table; a power of two */
    NAME_BYTES = 64,
    DETAIL_BYTES = 400,
    PATH_BYTES = 512,
    EVENT_BYTES = 2048,
    BUFFER_BYTES = 64 << 10,
    LANES = 4096, /* rows of the timeline that get a name: default streams by device, then the others */
    DEVICES = 64,
    FLUSH_NS = 500000000
};
#define TIMELINE_BYTES_MAX ((off_t)1 << 30)

typedef struct row {
    char name[NAME_BYTES]; /* "" = free */
    uint64_t calls, total_ns, slowest_ns;
    char slowest[DETAIL_BYTES];
} row;

/* Everything lies in static memory: recording allocates nothing and shows in no count of live blocks. */
static struct {
    pthread_mutex_t lock;
    uint64_t start_ns, flushed_ns, busy_ns, tasks, lost;
    row rows[ROWS];
    unsigned used;
    char timeline[PATH_BYTES], table[PATH_BYTES];
    int fd; /* of the timeline; -1 = none */
    off_t offset;
    uint8_t named[LANES / 8];
    size_t filled;
    char buffer[BUFFER_BYTES];
} profile = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

typedef struct span {
    const dp_stream *stream;
    const char *name, *tensors, *path; /* tensors and path are NULL of tasks that are no operators */
    const char *node;
    uint64_t begin_ns, end_ns;
} span;

_Atomic int dp_profile_state;
static _Thread_local const char *running_node;

/* The timeline. */

static bool write_all(int fd, const char *data, size_t bytes, off_t at) {
    while (bytes) {
        ssize_t n = at < 0 ? write(fd, data, bytes) : pwrite(fd, data, bytes, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        bytes -= (size_t)n;
        at += at < 0 ? 0 : n;
    }
    return true;
}

static void close_timeline(const char *why) {
    if (why)
        dp_log("profile", DP_LOG_ERROR, "%s: %s: the timeline ends here", profile.timeline, why);
    close(profile.fd);
    profile.fd = -1;
}

/* Called with the lock held, as all that follows. The end of the document is written again behind every piece. */
static void flush_timeline(void) {
    static const char end[] = "\n]}\n";
    if (profile.fd < 0)
        return;
    bool good = write_all(profile.fd, profile.buffer, profile.filled, profile.offset);
    profile.offset += (off_t)profile.filled;
    profile.filled = 0;
    if (!good || !write_all(profile.fd, end, sizeof end - 1, profile.offset))
        close_timeline(strerror(errno));
    else if (profile.offset > TIMELINE_BYTES_MAX)
        close_timeline("it has reached 1 GiB");
}

__attribute__((format(printf, 1, 2))) static void emit(const char *format, ...) {
    if (profile.fd < 0)
        return;
    if (profile.filled + EVENT_BYTES > BUFFER_BYTES)
        flush_timeline();
    va_list args;
    va_start(args, format);
    int n = vsnprintf(profile.buffer + profile.filled, EVENT_BYTES, format, args);
    va_end(args);
    if (n > 0 && n < EVENT_BYTES)
        profile.filled += (size_t)n;
}

/* Bytes of the well-formed UTF-8 character at text, 0 if it is none. */
static int character_bytes(const unsigned char *text) {
    int n = text[0] < 0x80 ? 1 : text[0] >> 5 == 6 ? 2 : text[0] >> 4 == 14 ? 3 : text[0] >> 3 == 30 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if (text[i] >> 6 != 2)
            return 0;
    return n;
}

/* text as the inside of a JSON string, cut where it does not fit. */
static const char *escape(const char *text, char *out, size_t out_bytes) {
    size_t used = 0;
    while (*text && used + 7 < out_bytes) {
        unsigned char c = (unsigned char)*text;
        int n = character_bytes((const unsigned char *)text);
        if (c == '"' || c == '\\')
            used += (size_t)snprintf(out + used, out_bytes - used, "\\%c", c);
        else if (c < 0x20 || !n)
            used += (size_t)snprintf(out + used, out_bytes - used, "\\u%04x", n ? c : 0xfffd);
        else
            for (int i = 0; i < n; i++)
                out[used++] = text[i];
        text += n ? n : 1;
    }
    out[used] = '\0';
    return out;
}

/* The row of a stream in the timeline; the first time it is seen, with an event that names the row. NULL: no stream. */
static unsigned lane_of(const dp_stream *stream) {
    unsigned lane = !stream              ? DEVICES - 1
                    : stream->is_default ? stream->device_id % (DEVICES - 1)
                                         : DEVICES + (stream->id & 0x3fffffff);
    if (lane >= LANES || profile.named[lane / 8] >> lane % 8 & 1)
        return lane;
    profile.named[lane / 8] |= (uint8_t)(1u << lane % 8);
    if (!stream) {
        emit(",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%u,\"args\":{\"name\":\"synchronous "
             "calls\"}}",
             (int)getpid(), lane);
        return lane;
    }
    emit(",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%u,\"args\":{\"name\":\"device %u, %s %u\"}}",
         (int)getpid(), lane, stream->device_id, stream->is_default ? "default stream" : "stream", stream->id);
    return lane;
}

static void emit_span(const span *s) {
    char name[2 * NAME_BYTES], tensors[2 * DETAIL_BYTES], path[2 * NAME_BYTES], node[4 * NAME_BYTES],
        args[EVENT_BYTES * 3 / 4] = "";
    unsigned lane = lane_of(s->stream);
    if (s->tensors)
        snprintf(args, sizeof args, ",\"args\":{\"tensors\":\"%s\",\"by\":\"%s\"%s%s%s}",
                 escape(s->tensors, tensors, sizeof tensors), escape(s->path, path, sizeof path),
                 s->node ? ",\"node\":\"" : "", s->node ? escape(s->node, node, sizeof node) : "", s->node ? "\"" : "");
    emit(",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f%s}",
         escape(s->name, name, sizeof name), s->tensors ? "operator" : "task", (int)getpid(), lane,
         (double)(int64_t)(s->begin_ns - profile.start_ns) * 1e-3, (double)(s->end_ns - s->begin_ns) * 1e-3, args);
}

/* The table. */

static row *find_row(const char *name) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *c = name; *c && c < name + NAME_BYTES - 1; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    for (unsigned i = (unsigned)(hash >> 32);; i++) {
        row *r = &profile.rows[i % ROWS];
        if (!r->name[0]) {
            if (profile.used >= ROWS - ROWS / 4)
                return NULL;
            profile.used++;
            snprintf(r->name, sizeof r->name, "%s", name);
            return r;
        }
        if (strncmp(r->name, name, NAME_BYTES - 1) == 0)
            return r;
    }
}

static void count(const span *s) {
    uint64_t duration_ns = s->end_ns - s->begin_ns;
    row *r = find_row(s->name[0] ? s->name : "(no name)");
    profile.tasks++;
    profile.busy_ns += duration_ns;
    if (!r) {
        profile.lost++;
        return;
    }
    r->total_ns += duration_ns;
    if (r->calls++ == 0 || duration_ns > r->slowest_ns) {
        r->slowest_ns = duration_ns;
        snprintf(r->slowest, sizeof r->slowest, "%s", s->tensors ? s->tensors : "");
    }
}

static int by_total(const void *a, const void *b) {
    uint64_t x = ((const row *)a)->total_ns, y = ((const row *)b)->total_ns;
    return (x < y) - (x > y);
}

/* rows without a name come last: their total is 0 */
static void write_table(int fd) {
    char line[NAME_BYTES + DETAIL_BYTES + 160];
    double busy = (double)profile.busy_ns, whole = (double)(dp_clock_ns() - profile.start_ns);
    int n = snprintf(line, sizeof line,
                     "doppel: profile: %llu tasks took %.3f ms of %.3f ms\n%-36s %9s %12s %7s %11s %11s  %s\n",
                     (unsigned long long)profile.tasks, busy * 1e-6, whole * 1e-6, "task", "calls", "total ms", "share",
                     "mean us", "slowest us", "the slowest one's tensors");
    bool good = write_all(fd, line, (size_t)n, -1);
    qsort(profile.rows, ROWS, sizeof profile.rows[0], by_total);
    for (unsigned i = 0; i < ROWS && good; i++) {
        const row *r = &profile.rows[i];
        if (!r->name[0])
            continue;
        n = snprintf(line, sizeof line, "%-36s %9llu %12.3f %6.1f%% %11.2f %11.2f  %s\n", r->name,
                     (unsigned long long)r->calls, (double)r->total_ns * 1e-6,
                     busy > 0 ? 100 * (double)r->total_ns / busy : 0, (double)r->total_ns / (double)r->calls * 1e-3,
                     (double)r->slowest_ns * 1e-3, r->slowest);
        good = write_all(fd, line, (size_t)n, -1);
    }
    if (good && profile.lost) {
        n = snprintf(line, sizeof line, "%llu tasks of further names are not listed\n",
                     (unsigned long long)profile.lost);
        write_all(fd, line, (size_t)n, -1);
    }
}

/* Opening and closing. */

static int open_place(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        dp_log("profile", DP_LOG_ERROR, "DOPPEL_PROFILE: %s cannot be written: %s", path, strerror(errno));
    return fd;
}

/* word with every %p replaced by the process number; false when it is too long. */
static bool expand(const char *word, char *out) {
    size_t used = 0;
    for (; *word && used < PATH_BYTES - 12; word++) {
        if (word[0] == '%' && word[1] == 'p') {
            used += (size_t)snprintf(out + used, PATH_BYTES - used, "%d", (int)getpid());
            word++;
        } else {
            out[used++] = *word;
        }
    }
    out[used] = '\0';
    return !*word;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static void take_place(const char *word) {
    char path[PATH_BYTES];
    bool is_timeline = ends_with(word, ".json"), is_table = ends_with(word, ".txt");
    if (strcmp(word, "stderr") == 0) {
        profile.table[0] = '\0';
        return;
    }
    if ((!is_timeline && !is_table) || !expand(word, path)) {
        dp_log("profile", DP_LOG_ERROR,
               "DOPPEL_PROFILE names \"%.100s\", but must name FILE.json, FILE.txt or stderr, separated by commas; "
               "it is left out",
               word);
        return;
    }
    if (is_table) {
        int fd = open_place(path);
        if (fd >= 0) {
            memcpy(profile.table, path, sizeof path);
            close(fd);
        }
        return;
    }
    if (profile.fd >= 0)
        close(profile.fd);
    memcpy(profile.timeline, path, sizeof path);
    profile.fd = open_place(path);
}

/* Called with the lock held. */
static void configure(void) {
    const char *spec = getenv("DOPPEL_PROFILE");
    if (!spec || !*spec) {
        atomic_store(&dp_profile_state, 1);
        return;
    }
    char *copy = strdup(spec), *save = NULL;
    for (char *word = copy ? strtok_r(copy, ",", &save) : NULL; word; word = strtok_r(NULL, ",", &save))
        take_place(word);
    free(copy);
    profile.start_ns = profile.flushed_ns = dp_clock_ns();
    char shown[256];
    emit("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"note\":\"measured on this "
         "machine\"},\"traceEvents\":[\n{\"ph\":\"M\","
         "\"name\":\"process_name\",\"pid\":%d,\"tid\":0,\"args\":{\"name\":\"%s\"}}",
         (int)getpid(), escape(program_invocation_short_name, shown, sizeof shown));
    flush_timeline();
    atomic_store(&dp_profile_state, 2);
}

bool dp_profile_open(void) {
    if (atomic_load(&dp_profile_state) == 0) {
        pthread_mutex_lock(&profile.lock);
        if (atomic_load(&dp_profile_state) == 0)
            configure();
        pthread_mutex_unlock(&profile.lock);
    }
    return atomic_load(&dp_profile_state) == 2;
}

static void record(const span *s) {
    pthread_mutex_lock(&profile.lock);
    if (atomic_load(&dp_profile_state) == 2) {
        count(s);
        emit_span(s);
        if (s->end_ns - profile.flushed_ns > FLUSH_NS) {
            profile.flushed_ns = s->end_ns;
            flush_timeline();
        }
    }
    pthread_mutex_unlock(&profile.lock);
}

void dp_profile_task(const dp_stream *stream, const char *name, uint64_t begin_ns) {
    record(&(span){.stream = stream, .name = name, .begin_ns = begin_ns, .end_ns = dp_clock_ns()});
}

void dp_profile_operator(const char *name, uint64_t begin_ns, uint64_t end_ns, const char *tensors, const char *path) {
    dp_stream *stream = dp_stream_running();
    if (stream)
        stream->head->begin_ns = 0;
    record(&(span){stream, name, tensors, path, running_node, begin_ns, end_ns});
}

void dp_profile_node(const char *name) {
    running_node = name;
}

/* Of the library: after the program's own handlers and destructors, whose work is recorded, too. */
__attribute__((destructor)) static void finish(void) {
    if (atomic_load(&dp_profile_state) != 2)
        return;
    pthread_mutex_lock(&profile.lock);
    atomic_store(&dp_profile_state, 1);
    flush_timeline();
    if (profile.fd >= 0)
        close_timeline(NULL);
    int fd = profile.table[0] ? open_place(profile.table) : STDERR_FILENO;
    if (fd >= 0)
        write_table(fd);
    if (profile.table[0] && fd >= 0)
        close(fd);
    pthread_mutex_unlock(&profile.lock);
}

void dp_profile_fork_prepare(void) {
    pthread_mutex_lock(&profile.lock);
}

void dp_profile_fork_parent(void) {
    pthread_mutex_unlock(&profile.lock);
}

void dp_profile_fork_child(void) {
    if (atomic_load(&dp_profile_state) == 2)
        atomic_store(&dp_profile_state, 1);
    if (profile.fd >= 0)
        close(profile.fd);
    profile.fd = -1;
    pthread_mutex_unlock(&profile.lock);
}
