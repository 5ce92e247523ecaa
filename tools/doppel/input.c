#include "input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"

const char input_usage[] =
    "  --input NAME=FILE  what goes into an input (NAME= may be left out when the model has one): a\n"
    "                     picture (.jpg, .png), a NumPy array (.npy), or its bytes as they are (any\n"
    "                     other name); or numbers, NAME=16000 or NAME=1,2.5,3: one for all elements,\n"
    "                     or one for each; or one of the words random, random:SEED (numbers in [0, 1),\n"
    "                     or 0 and 1 for integers), zeros, ones; a word without NAME= is for all inputs\n"
    "                     that no other --input is for\n"
    "\n"
    "How pictures become tensors: each colour is (value - mean) x scale, value being 0 to 255. A model\n"
    "with AIPP gets the picture as its AIPP wants it.\n"
    "  --resize HOW       stretch (default), pad (proportions kept, black around), crop (proportions\n"
    "                     kept, the middle), exact (refuse a picture of another size); bilinear\n"
    "  --layout HOW       nchw or nhwc; without it, the place of the dimension that is 3 (or 1, for\n"
    "                     gray) decides\n"
    "  --colour HOW       rgb (default) or bgr\n"
    "  --mean A[,B,C]     default 0; three numbers are for red, green and blue\n"
    "  --scale A[,B,C]    default 1/255 for inputs of floating-point numbers, 1 for integers; numbers\n"
    "                     may be written as 1/58.4\n";

static bool parse_number(const char **text, double *out) {
    char *end;
    *out = strtod(*text, &end);
    if (end == *text)
        return false;
    if (*end == '/') {
        *text = end + 1;
        double below = strtod(*text, &end);
        if (end == *text || below == 0)
            return false;
        *out /= below;
    }
    *text = end;
    return true;
}

/* One number, or three. */
static bool parse_three(const char *text, double *out) {
    for (int i = 0; i < 3; i++) {
        if (!parse_number(&text, &out[i]))
            return false;
        if (i == 0 && !*text) {
            out[1] = out[2] = out[0];
            return true;
        }
        if (*text != (i < 2 ? ',' : '\0'))
            return false;
        text += i < 2;
    }
    return true;
}

/* The place of a word in a list, -1: not there. */
static int word_of(const char *text, const char *const *words, int n) {
    for (int i = 0; i < n; i++)
        if (strcmp(text, words[i]) == 0)
            return i;
    return -1;
}

static int set_word(const char *command, const char *option, const char *value, const char *const *words, int n) {
    int place = word_of(value, words, n);
    if (place >= 0)
        return place;
    fprintf(stderr, "%s: %s is \"%s\", expected ", command, option, value);
    for (int i = 0; i < n; i++)
        fprintf(stderr, "%s%s", words[i], i + 1 < n ? i + 2 < n ? ", " : " or " : "\n");
    return -1;
}

int input_option(const char *command, int argc, char **argv, int *at, input_options *o) {
    static const char *const names[] = {"--input", "--resize", "--layout", "--colour", "--mean", "--scale"};
    static const char *const fits[] = {"stretch", "pad", "crop", "exact"};
    static const char *const layouts[] = {"nchw", "nhwc"}, *const colours[] = {"rgb", "bgr"};
    int which = word_of(argv[*at], names, 6), word = 0;
    if (which < 0)
        return 0;
    if (*at + 1 >= argc) {
        fprintf(stderr, "%s: %s needs a value\n", command, argv[*at]);
        return -1;
    }
    const char *value = argv[++*at];
    switch (which) {
    case 0:
        if (o->n_sources == MODEL_ENDS) {
            fprintf(stderr, "%s: more than %d times --input\n", command, MODEL_ENDS);
            return -1;
        }
        o->sources[o->n_sources++] = value;
        return 1;
    case 1:
        if ((word = set_word(command, names[which], value, fits, 4)) < 0)
            return -1;
        o->fit = (raster_fit)word;
        return 1;
    case 2:
        if ((word = set_word(command, names[which], value, layouts, 2)) < 0)
            return -1;
        o->layout = word ? LAYOUT_NHWC : LAYOUT_NCHW;
        return 1;
    case 3:
        if ((word = set_word(command, names[which], value, colours, 2)) < 0)
            return -1;
        o->is_bgr = word == 1;
        return 1;
    default:
        if (!parse_three(value, which == 4 ? o->mean : o->scale)) {
            fprintf(stderr, "%s: %s is \"%s\", expected one number or three with commas between them\n", command,
                    names[which], value);
            return -1;
        }
        o->has_scale |= which == 5;
        return 1;
    }
}

static bool ends_in(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcasecmp(text + n - m, end) == 0;
}

static bool say(const model *m, const model_end *e, const char *sentence) {
    fprintf(stderr, "%s: input \"%s\": %s\n", m->command, e->name, sentence);
    return false;
}

/* Pictures. */

static bool is_float(aclDataType type) {
    return type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16 || type == ACL_DOUBLE;
}

/* Which of the input's dims are height, width and channels. */
typedef struct plane {
    int64_t height, width, channels;
    size_t step_y, step_x, step_c; /* in elements */
} plane;

static bool find_plane(const model_end *e, input_layout layout, plane *p) {
    if ((e->rank != 3 && e->rank != 4) || (e->rank == 4 && e->dims[0] != 1))
        return false;
    const int64_t *d = e->dims + (e->rank - 3);
    if (layout == LAYOUT_GUESS) {
        bool first = d[0] == 3 || d[0] == 1, last = d[2] == 3 || d[2] == 1;
        layout = first && (!last || d[0] == 3) ? LAYOUT_NCHW : last ? LAYOUT_NHWC : LAYOUT_GUESS;
    }
    if (layout == LAYOUT_GUESS)
        return false;
    if (layout == LAYOUT_NCHW)
        *p = (plane){d[1], d[2], d[0], (size_t)d[2], 1, (size_t)d[1] * (size_t)d[2]};
    else
        *p = (plane){d[0], d[1], d[2], (size_t)d[1] * (size_t)d[2], (size_t)d[2], 1};
    return (p->channels == 3 || p->channels == 1) && p->height > 0 && p->width > 0 && p->height <= RASTER_SIDE_MAX &&
           p->width <= RASTER_SIDE_MAX;
}

/* One channel of one pixel; gray by the weights of ITU-R BT.601. */
static double colour_of(const uint8_t *pixel, const plane *p, int channel, const input_options *o,
                        bool is_float_input) {
    int c = o->is_bgr ? 2 - channel : channel;
    double value = p->channels == 3 ? pixel[c] : 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
    if (p->channels == 1)
        c = 0;
    return (value - o->mean[c]) * (o->has_scale ? o->scale[c] : is_float_input ? 1 / 255.0 : 1);
}

static bool read_sized(const model *m, const model_end *e, const char *path, int width, int height, raster_fit fit,
                       raster *out) {
    char message[RASTER_MESSAGE];
    raster read;
    if (!raster_read(path, &read, message))
        return say(m, e, message);
    bool good = raster_resize(&read, width, height, fit, out, message);
    raster_free(&read);
    return good || say(m, e, message);
}

static uint8_t to_byte(double value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value + 0.5);
}

/* YUV 4:2:0 with interleaved chroma, by the formulas of JPEG files. */
static void write_yuv420(const raster *r, uint8_t *luma) {
    uint8_t *chroma = luma + (size_t)r->width * (size_t)r->height;
    for (int y = 0; y < r->height; y++)
        for (int x = 0; x < r->width; x++) {
            const uint8_t *p = r->pixels + 3 * ((size_t)y * (size_t)r->width + (size_t)x);
            luma[(size_t)y * (size_t)r->width + (size_t)x] = to_byte(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]);
        }
    for (int y = 0; y + 1 < r->height; y += 2)
        for (int x = 0; x + 1 < r->width; x += 2) {
            double sum[3] = {0};
            for (int k = 0; k < 4; k++)
                for (int c = 0; c < 3; c++)
                    sum[c] +=
                        r->pixels[3 * ((size_t)(y + k / 2) * (size_t)r->width + (size_t)(x + k % 2)) + (size_t)c] / 4.0;
            *chroma++ = to_byte(128 - 0.168736 * sum[0] - 0.331264 * sum[1] + 0.5 * sum[2]);
            *chroma++ = to_byte(128 + 0.5 * sum[0] - 0.418688 * sum[1] - 0.081312 * sum[2]);
        }
}

/* A picture as the model's AIPP takes it; colours and scale are its business. */
static bool fill_aipp(const model *m, model_end *e, const char *path, const input_options *o) {
    size_t pixels = (size_t)e->aipp_width * (size_t)e->aipp_height;
    bool is_yuv = e->aipp == ACL_YUV420SP_U8 && e->bytes == pixels * 3 / 2;
    bool is_rgb = e->aipp == ACL_RGB888_U8 && e->bytes == pixels * 3;
    raster sized;
    if (!is_yuv && !is_rgb)
        return say(m, e,
                   "its AIPP takes a format, or a number of pictures, that doppel does not make: give it raw bytes");
    if (o->has_scale || o->mean[0] != 0 || o->mean[1] != 0 || o->mean[2] != 0)
        return say(m, e, "the model's AIPP does what --mean and --scale say: leave them out");
    if (!read_sized(m, e, path, e->aipp_width, e->aipp_height, o->fit, &sized))
        return false;
    if (is_yuv)
        write_yuv420(&sized, e->host);
    for (size_t i = 0; i < 3 * pixels && is_rgb; i++)
        ((uint8_t *)e->host)[i] = sized.pixels[o->is_bgr ? i - i % 3 + 2 - i % 3 : i];
    raster_free(&sized);
    return true;
}

static bool fill_picture(const model *m, model_end *e, const char *path, const input_options *o) {
    char message[RASTER_MESSAGE], shape[128];
    plane p;
    raster sized;
    if (e->has_aipp)
        return fill_aipp(m, e, path, o);
    if (!find_plane(e, o->layout, &p)) {
        snprintf(message, sizeof message,
                 "its shape is %s, which no single picture fits: 1x3xHxW, 1xHxWx3 (or 1 for 3) is "
                 "expected; see --layout",
                 model_shape_text(e->dims, e->rank, shape, sizeof shape));
        return say(m, e, message);
    }
    bool good = read_sized(m, e, path, (int)p.width, (int)p.height, o->fit, &sized);
    if (!good)
        return false;
    for (size_t y = 0; y < (size_t)p.height && good; y++)
        for (size_t x = 0; x < (size_t)p.width && good; x++)
            for (int c = 0; c < p.channels && good; c++)
                good = model_set_number(
                    e->type, e->host, y * p.step_y + x * p.step_x + (size_t)c * p.step_c,
                    colour_of(&sized.pixels[3 * (y * (size_t)p.width + x)], &p, c, o, is_float(e->type)));
    raster_free(&sized);
    return good || say(m, e, "its element type cannot hold the picture's numbers: see --mean and --scale");
}

/* Arrays. */

static aclDataType type_of(const npy_array *a) {
    static const struct {
        char kind;
        int bytes;
        aclDataType type;
    } known[] = {{'f', 4, ACL_FLOAT},     {'f', 2, ACL_FLOAT16},    {'f', 8, ACL_DOUBLE}, {'i', 1, ACL_INT8},
                 {'u', 1, ACL_UINT8},     {'i', 2, ACL_INT16},      {'u', 2, ACL_UINT16}, {'i', 4, ACL_INT32},
                 {'u', 4, ACL_UINT32},    {'i', 8, ACL_INT64},      {'u', 8, ACL_UINT64}, {'b', 1, ACL_BOOL},
                 {'c', 8, ACL_COMPLEX64}, {'c', 16, ACL_COMPLEX128}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].kind == a->kind && known[i].bytes == a->item_bytes)
            return known[i].type;
    return ACL_DT_UNDEFINED;
}

/* The same dims but for dims of 1 in front. */
static bool same_shape(const npy_array *a, const model_end *e) {
    int i = 0, k = 0;
    while (i < a->rank && a->rank - i > e->rank && a->dims[i] == 1)
        i++;
    while (k < e->rank && e->rank - k > a->rank && e->dims[k] == 1)
        k++;
    if (a->rank - i != e->rank - k)
        return false;
    for (; i < a->rank; i++, k++)
        if (a->dims[i] != e->dims[k])
            return false;
    return true;
}

static bool convert(const model *m, model_end *e, const npy_array *a, const char *path) {
    aclDataType type = type_of(a);
    char sentence[420];
    if (type == e->type) {
        memcpy(e->host, a->data, e->bytes);
        return true;
    }
    bool complex = a->kind == 'c' || e->type == ACL_COMPLEX64 || e->type == ACL_COMPLEX128;
    if (complex || (a->kind == 'f' && !is_float(e->type))) {
        snprintf(sentence, sizeof sentence, "%.200s has %s numbers, the model takes %s", path, model_type_name(type),
                 model_type_name(e->type));
        return say(m, e, sentence);
    }
    for (size_t i = 0; i < e->count; i++) {
        double value = model_number(type, a->data, i);
        if (!model_set_number(e->type, e->host, i, value)) {
            snprintf(sentence, sizeof sentence, "%.200s has the number %.17g, which %s cannot hold", path, value,
                     model_type_name(e->type));
            return say(m, e, sentence);
        }
    }
    fprintf(stderr, "%s: input \"%s\": %s converted to %s\n", m->command, e->name, model_type_name(type),
            model_type_name(e->type));
    return true;
}

static bool fill_array(const model *m, model_end *e, const char *path) {
    char message[NPY_MESSAGE + 200], has[128], wants[128];
    npy_array a;
    if (!npy_read(path, &a, message))
        return say(m, e, message);
    bool good = same_shape(&a, e);
    if (good) {
        good = convert(m, e, &a, path);
    } else {
        snprintf(message, sizeof message, "%.200s has shape %s, the model takes %s", path,
                 model_shape_text(a.dims, a.rank, has, sizeof has),
                 model_shape_text(e->dims, e->rank, wants, sizeof wants));
        say(m, e, message);
    }
    npy_free(&a);
    return good;
}

static bool fill_bytes(const model *m, model_end *e, const char *path) {
    char sentence[420];
    FILE *file = fopen(path, "rb");
    if (!file) {
        snprintf(sentence, sizeof sentence, "%.200s: %s", path, strerror(errno));
        return say(m, e, sentence);
    }
    size_t got = fread(e->host, 1, e->bytes + 1, file); /* host has one byte more, to notice a file that is too long */
    bool good = got == e->bytes;
    if (!good) {
        snprintf(sentence, sizeof sentence, "%.200s has %s%zu bytes, the model takes %zu", path,
                 got > e->bytes ? "more than " : "", got > e->bytes ? e->bytes : got, e->bytes);
        say(m, e, sentence);
    }
    fclose(file);
    return good;
}

/* Numbers. */

static void fill_random(model_end *e, uint64_t seed) {
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
    for (size_t i = 0; i < e->count; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        double value = (double)(state >> 40) * 0x1p-24;
        model_set_number(e->type, e->host, i, is_float(e->type) ? value : value >= 0.5);
    }
}

/* Whether the text is numbers with commas between them, and how many. A file of such a name is written ./16000. */
static bool are_numbers(const char *text, size_t *out_count) {
    for (*out_count = 0;; text++) {
        char *end;
        strtod(text, &end);
        if (end == text || (*end && *end != ','))
            return false;
        ++*out_count;
        if (!*end)
            return true;
        text = end;
    }
}

static bool fill_numbers(const model *m, model_end *e, const char *text, size_t count) {
    char sentence[200], shape[128], *end;
    if (count != 1 && count != e->count) {
        snprintf(sentence, sizeof sentence, "%zu numbers are given, the model takes %s: one for all elements, or %zu",
                 count, model_shape_text(e->dims, e->rank, shape, sizeof shape), e->count);
        return say(m, e, sentence);
    }
    double value = strtod(text, &end);
    for (size_t i = 0; i < e->count; i++) {
        if (!model_set_number(e->type, e->host, i, value)) {
            snprintf(sentence, sizeof sentence, "%s cannot hold the number %.17g", model_type_name(e->type), value);
            return say(m, e, sentence);
        }
        if (*end)
            value = strtod(end + 1, &end);
    }
    return true;
}

static bool fill_from(const model *m, model_end *e, const char *source, const input_options *o) {
    size_t count;
    if (are_numbers(source, &count))
        return fill_numbers(m, e, source, count);
    if (strcmp(source, "zeros") == 0 || strcmp(source, "ones") == 0) {
        memset(e->host, 0, e->bytes);
        for (size_t i = 0; source[0] == 'o' && i < e->count; i++)
            model_set_number(e->type, e->host, i, 1);
        return true;
    }
    if (strcmp(source, "random") == 0 || strncmp(source, "random:", 7) == 0) {
        char *end = NULL;
        unsigned long long seed = source[6] ? strtoull(source + 7, &end, 10) : 0;
        if (end && (*end || end == source + 7))
            return say(m, e, "random: a number must follow the colon");
        fill_random(e, seed);
        return true;
    }
    if (ends_in(source, ".npy"))
        return fill_array(m, e, source);
    if (ends_in(source, ".jpg") || ends_in(source, ".jpeg") || ends_in(source, ".png"))
        return fill_picture(m, e, source, o);
    return fill_bytes(m, e, source);
}

/* The input that "NAME=FILE" means, and FILE; the only input for a text that begins with no input's name. NULL: none.
 */
static model_end *find_input(model *m, const char *text, const char **out_source) {
    for (int i = 0; i < m->n_inputs; i++) {
        size_t length = strlen(m->inputs[i].name);
        if (strncmp(text, m->inputs[i].name, length) == 0 && text[length] == '=') {
            *out_source = text + length + 1;
            return &m->inputs[i];
        }
    }
    *out_source = text;
    const char *equals = strchr(text, '='), *slash = strchr(text, '/');
    return m->n_inputs == 1 && (!equals || (slash && slash < equals)) ? &m->inputs[0] : NULL;
}

static bool is_word(const char *source) {
    return strcmp(source, "zeros") == 0 || strcmp(source, "ones") == 0 || strcmp(source, "random") == 0 ||
           strncmp(source, "random:", 7) == 0;
}

static void list_inputs(const model *m) {
    char shape[128];
    for (int i = 0; i < m->n_inputs; i++)
        fprintf(stderr, "    %s  %s %s\n", m->inputs[i].name, model_type_name(m->inputs[i].type),
                model_shape_text(m->inputs[i].dims, m->inputs[i].rank, shape, sizeof shape));
}

bool input_fill(model *m, const input_options *o, bool random) {
    bool filled[MODEL_ENDS] = {false};
    const char *rest = NULL; /* a word without a name: for all inputs that nothing else is said of */
    for (int i = 0; i < o->n_sources; i++) {
        const char *source;
        model_end *e = find_input(m, o->sources[i], &source);
        if (!e && !rest && is_word(source)) {
            rest = source;
            continue;
        }
        if (!e) {
            fprintf(stderr, "%s: --input %s begins with the name of no input; the model's inputs are\n", m->command,
                    o->sources[i]);
            list_inputs(m);
            return false;
        }
        if (filled[e - m->inputs])
            return say(m, e, "it is given twice");
        filled[e - m->inputs] = true;
        if (!fill_from(m, e, source, o))
            return false;
    }
    for (int i = 0; i < m->n_inputs; i++) {
        if (filled[i])
            continue;
        if (rest && strcmp(rest, "random") != 0) {
            if (!fill_from(m, &m->inputs[i], rest, o))
                return false;
            continue;
        }
        if (!random && !rest) {
            fprintf(stderr, "%s: --input is missing for \"%s\"; the model's inputs are\n", m->command,
                    m->inputs[i].name);
            list_inputs(m);
            fprintf(
                stderr,
                "give each a file (.jpg, .png, .npy, bytes), numbers, or random, zeros or ones: --input %s=random\n",
                m->inputs[i].name);
            return false;
        }
        fill_random(&m->inputs[i], (uint64_t)i);
    }
    return true;
}
