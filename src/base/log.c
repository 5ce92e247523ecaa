#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int max_level = DP_LOG_ERROR;
static char topics[256]; /* ",a,b," or "" = no topic chosen */
static bool all_topics;

static void read_topic(const char *word) {
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(word, levels[i]) == 0) {
            max_level = i;
            return;
        }
    }
    if (strcmp(word, "all") == 0) {
        all_topics = true;
        return;
    }
    size_t used = strlen(topics);
    if (used + strlen(word) + 3 < sizeof topics)
        snprintf(topics + used, sizeof topics - used, "%s%s,", used ? "" : ",", word);
}

static void configure(void) {
    const char *level = getenv("ASCEND_GLOBAL_LOG_LEVEL");
    if (level && level[0] >= '0' && level[0] <= '3' && !level[1]) {
        max_level = DP_LOG_DEBUG - (level[0] - '0');
        all_topics = true;
    }
    const char *spec = getenv("DOPPEL_LOG");
    if (!spec || !*spec)
        return;
    if (max_level < DP_LOG_INFO)
        max_level = DP_LOG_INFO;
    char copy[256];
    snprintf(copy, sizeof copy, "%s", spec);
    for (char *save = NULL, *word = strtok_r(copy, ", ", &save); word; word = strtok_r(NULL, ", ", &save))
        read_topic(word);
    if (!topics[0])
        all_topics = true;
}

bool dp_log_on(const char *topic, dp_log_level level) {
    pthread_once(&once, configure);
    if (level == DP_LOG_ERROR)
        return true;
    if ((int)level > max_level)
        return false;
    if (all_topics)
        return true;
    char needle[64];
    snprintf(needle, sizeof needle, ",%s,", topic);
    return strstr(topics, needle) != NULL;
}

void dp_log(const char *topic, dp_log_level level, const char *format, ...) {
    if (!dp_log_on(topic, level))
        return;
    char line[2048];
    int used = snprintf(line, sizeof line, "doppel: %s: ", topic);
    va_list args;
    va_start(args, format);
    int more = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
    va_end(args);
    size_t length = (size_t)used + (more > 0 ? (size_t)more : 0);
    if (length > sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, line, length);
    (void)ignored;
}
