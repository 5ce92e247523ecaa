/*
 * detect - faces (BlazeFace) and text (PP-OCRv4: detect, turn, read) on photographs, as the vendor's samples do it:
 * decode and scale on the device (DVPP), run compiled models (aclmdl), work on their results, draw, encode (DVPP).
 *
 *   ./models.sh models                    # fetches the networks and compiles them
 *   detect --models models --out out photo.jpg ...
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "device.h"
#include "drawing.h"
#include "faces.h"
#include "lines.h"
#include "net.h"
#include "reading.h"

enum { PATH_BYTES = 4096, TEXT_BYTES = 512 };
/* Least probabilities: of a face, of a text that is worth showing, that a line is upside down. */
static const float faceLeast = 0.75f, readLeast = 0.5f, turnLeast = 0.9f;

typedef struct Options {
    const char *models, *out, *json;
    bool faces, text;
    char **photos;
    int count;
} Options;

typedef struct Detector {
    Device device;
    Net face, lines, turn, read[2];
    Alphabet alphabet;
    const Options *options;
    FILE *json;
} Detector;

/* What is known of one photograph. */
typedef struct Photo {
    Image image;
    Picture picture; /* the same in RGB */
    Drawing *drawing;
    int found;
} Photo;

static bool Load(Detector *d) {
    char path[PATH_BYTES];
    const char *folder = d->options->models;
    if (d->options->faces && !NetLoad(folder, "face_back", &d->face))
        return false;
    if (!d->options->text)
        return true;
    snprintf(path, sizeof path, "%s/ppocr_keys_v1.txt", folder);
    if (!NetLoad(folder, "text_lines", &d->lines) || !NetLoad(folder, "text_turn", &d->turn) ||
        !NetLoad(folder, "text_read_320", &d->read[0]) || !NetLoad(folder, "text_read_960", &d->read[1]) ||
        !AlphabetRead(path, &d->alphabet))
        return false;
    int64_t classes = d->read[0].output[0].dims.dims[2];
    if (classes == d->alphabet.count)
        return true;
    fprintf(stderr, "%s has %d characters, the network %lld classes\n", path, d->alphabet.count, (long long)classes);
    return false;
}

static void Unload(Detector *d) {
    NetFree(&d->face);
    NetFree(&d->lines);
    NetFree(&d->turn);
    NetFree(&d->read[0]);
    NetFree(&d->read[1]);
    AlphabetFree(&d->alphabet);
}

/* One found thing for the file of results: corners and score; text or NULL. */
static void Note(Detector *d, Photo *photo, const char *kind, const float *x, const float *y, float score,
                 const char *text) {
    bool isFirst = photo->found++ == 0;
    if (!d->json)
        return;
    fprintf(d->json, "%s\n    {\"kind\": \"%s\", \"score\": %.4f, \"corners\": [", isFirst ? "" : ",", kind,
            (double)score);
    for (int i = 0; i < 4; i++)
        fprintf(d->json, "%s[%.2f, %.2f]", i ? ", " : "", (double)x[i], (double)y[i]);
    fputs("]", d->json);
    if (text) {
        fputs(", \"text\": \"", d->json);
        for (; *text; text++)
            fprintf(d->json, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
        fputs("\"", d->json);
    }
    fputs("}", d->json);
}

/*
 * Runs a network whose AIPP takes the photograph scaled into its width x height; scaleX, scaleY: pixels of the
 * photograph per pixel of that.
 */
static bool RunOnPhoto(Detector *d, const Photo *photo, Net *net, int width, int height, float *scaleX, float *scaleY) {
    Image fitted = {0};
    int fitWidth, fitHeight;
    if (net->type != ACL_UINT8 || net->inputBytes != (size_t)width * (size_t)height * 3 / 2) {
        fprintf(stderr, "%s.om takes no picture: was it compiled with %s.aipp?\n", net->name, net->name);
        return false;
    }
    bool good =
        ImageFit(&d->device, &photo->image, width, height, &fitted, &fitWidth, &fitHeight) && NetRun(net, fitted.data);
    ImageFree(&fitted);
    *scaleX = (float)photo->image.width / (float)fitWidth;
    *scaleY = (float)photo->image.height / (float)fitHeight;
    return good;
}

/* Faces. */

static void ShowFace(Detector *d, Photo *photo, const Face *face, float scaleX, float scaleY) {
    float x[] = {face->left * scaleX, face->right * scaleX, face->right * scaleX, face->left * scaleX};
    float y[] = {face->top * scaleY, face->top * scaleY, face->bottom * scaleY, face->bottom * scaleY};
    char words[64];
    printf("  face   %.3f  at (%.0f, %.0f), %.0f x %.0f\n", (double)face->score, (double)x[0], (double)y[0],
           (double)(x[1] - x[0]), (double)(y[2] - y[0]));
    snprintf(words, sizeof words, "face %.2f", (double)face->score);
    DrawingBox(photo->drawing, x, y, words, false);
    for (int i = 0; i < FACE_POINTS; i++)
        DrawingPoint(photo->drawing, face->x[i] * scaleX, face->y[i] * scaleY);
    Note(d, photo, "face", x, y, face->score, NULL);
}

static bool FindFaces(Detector *d, Photo *photo) {
    Net *net = &d->face;
    int side = (int)net->dims.dims[2];
    Face faces[FACES_MOST];
    float scaleX, scaleY;
    if (!RunOnPhoto(d, photo, net, side, side, &scaleX, &scaleY))
        return false;
    int n = FacesFind(net->output[0].host, net->output[2].host, net->output[1].host, net->output[3].host, side,
                      faceLeast, faces);
    for (int i = 0; i < n; i++)
        ShowFace(d, photo, &faces[i], scaleX * (float)side, scaleY * (float)side);
    return true;
}

/* Text. */

static bool FindLines(Detector *d, const Photo *photo, Line *lines, int *count) {
    Net *net = &d->lines; /* its picture: as many rows of chroma as half those of luma */
    int width = (int)net->dims.dims[2], height = (int)net->dims.dims[1] * 2 / 3;
    float scaleX, scaleY;
    if (!RunOnPhoto(d, photo, net, width, height, &scaleX, &scaleY))
        return false;
    *count = LinesFind(net->output[0].host, width, height, width, lines);
    for (int i = 0; i < *count; i++)
        for (int k = 0; k < 4; k++) {
            lines[i].x[k] = fminf(fmaxf(lines[i].x[k] * scaleX, 0), (float)photo->image.width - 1);
            lines[i].y[k] = fminf(fmaxf(lines[i].y[k] * scaleY, 0), (float)photo->image.height - 1);
        }
    return *count >= 0;
}

/* Columns that a line takes in a network's input. */
static int Columns(const Line *line, int height, int width) {
    int used = (int)ceilf(LineProportion(line) * (float)height);
    return used < 1 ? 1 : used > width ? width : used;
}

static bool IsUpsideDown(Detector *d, const Photo *photo, const Line *line, bool *out) {
    Net *net = &d->turn;
    int height = (int)net->dims.dims[2], width = (int)net->dims.dims[3];
    float *input = malloc(net->inputBytes);
    if (!input)
        return false;
    LineCut(&photo->picture, line, false, height, width, Columns(line, height, width), input);
    bool good = NetRun(net, input);
    *out = good && net->output[0].host[1] > turnLeast;
    free(input);
    return good;
}

static bool ReadLine(Detector *d, const Photo *photo, const Line *line, char *text, float *score) {
    bool upsideDown;
    if (!IsUpsideDown(d, photo, line, &upsideDown))
        return false;
    int height = (int)d->read[0].dims.dims[2], narrow = (int)d->read[0].dims.dims[3];
    Net *net = &d->read[LineProportion(line) * (float)height > (float)narrow];
    int width = (int)net->dims.dims[3];
    float *input = malloc(net->inputBytes);
    if (!input)
        return false;
    LineCut(&photo->picture, line, upsideDown, height, width, Columns(line, height, width), input);
    bool good = NetRun(net, input);
    const aclmdlIODims *dims = &net->output[0].dims;
    if (good)
        *score =
            TextDecode(&d->alphabet, net->output[0].host, (int)dims->dims[1], (int)dims->dims[2], text, TEXT_BYTES);
    free(input);
    return good;
}

static bool FindText(Detector *d, Photo *photo) {
    Line lines[LINES_MOST];
    int count;
    if (!FindLines(d, photo, lines, &count))
        return false;
    for (int i = 0; i < count; i++) {
        const Line *l = &lines[i];
        char text[TEXT_BYTES];
        float score = 0;
        if (!ReadLine(d, photo, l, text, &score))
            return false;
        if (score < readLeast)
            continue;
        printf("  text   %.3f  at (%.0f, %.0f)  %s\n", (double)score, (double)l->x[0], (double)l->y[0], text);
        DrawingBox(photo->drawing, l->x, l->y, text, true);
        Note(d, photo, "text", l->x, l->y, score, text);
    }
    return true;
}

static bool WritePhoto(Detector *d, Photo *photo, const char *path) {
    char file[PATH_BYTES];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    Image drawn = {0};
    snprintf(file, sizeof file, "%s/%.*s.found.jpg", d->options->out, (int)(dot ? (size_t)(dot - name) : strlen(name)),
             name);
    bool good = ImageFromPicture(&d->device, &photo->picture, &drawn) && ImageEncode(&d->device, &drawn, file);
    ImageFree(&drawn);
    if (good)
        printf("  -> %s\n", file);
    return good;
}

static bool Look(Detector *d, const char *path, bool isFirst) {
    Photo photo = {.found = 0};
    bool good = ImageDecode(&d->device, path, &photo.image) && ImageToPicture(&d->device, &photo.image, &photo.picture);
    if (good) {
        const char *slash = strrchr(path, '/');
        printf("%s: %d x %d\n", path, photo.image.width, photo.image.height);
        if (d->json)
            fprintf(d->json, "%s\n  {\"photo\": \"%s\", \"found\": [", isFirst ? "" : ",", slash ? slash + 1 : path);
        photo.drawing = DrawingOpen(&photo.picture);
        good =
            photo.drawing && (!d->options->faces || FindFaces(d, &photo)) && (!d->options->text || FindText(d, &photo));
        if (good && !photo.found)
            puts("  nothing");
        if (photo.drawing)
            DrawingClose(photo.drawing, &photo.picture);
        if (d->json)
            fprintf(d->json, "]}");
        good = good && WritePhoto(d, &photo, path);
    }
    ImageFree(&photo.image);
    free(photo.picture.pixels);
    return good;
}

static bool Run(const Options *o) {
    Detector d = {.options = o};
    bool good = DeviceOpen(&d.device) && Load(&d);
    if (good && o->json && !(d.json = fopen(o->json, "w"))) {
        perror(o->json);
        good = false;
    }
    if (d.json)
        fputs("[", d.json);
    for (int i = 0; i < o->count && good; i++)
        if (!Look(&d, o->photos[i], i == 0)) {
            fprintf(stderr, "%s: nothing was found on it, because of the failure above\n", o->photos[i]);
            good = false;
        }
    if (d.json) {
        fputs("\n]\n", d.json);
        good &= fclose(d.json) == 0;
    }
    Unload(&d);
    DeviceClose(&d.device);
    return good;
}

static const char *const usage =
    "usage: detect [options] PHOTO...\n"
    "\n"
    "Finds faces and reads text on photographs (JPEG, PNG), prints what it found with scores, and writes\n"
    "every photograph with boxes drawn on it as NAME.found.jpg.\n"
    "\n"
    "  --models FOLDER    compiled networks, as models.sh makes them (default models)\n"
    "  --out FOLDER       where the drawn photographs go (default .); made if it does not exist\n"
    "  --only WHAT        faces or text\n"
    "  --json FILE        write what was found: scores, corners, text\n"
    "  --keep FOLDER      write what goes into the networks and what comes out of them\n"
    "  --replay FOLDER    take what comes out of the networks from such files\n";

/* 1: run, 0: help was printed, -1: wrong usage. */
static int ReadOptions(int argc, char **argv, Options *o) {
    static const char *const names[] = {"--models", "--out", "--only", "--json", "--keep", "--replay"};
    *o = (Options){.models = "models", .out = ".", .faces = true, .text = true};
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i += 2) {
        int which = 0;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        while (which < 6 && strcmp(argv[i], names[which]) != 0)
            which++;
        if (which == 6 || i + 1 >= argc) {
            fprintf(stderr, "detect: %s %s\n", argv[i], which == 6 ? "is no option" : "needs a value");
            return -1;
        }
        const char *value = argv[i + 1];
        if (which < 2)
            *(which ? &o->out : &o->models) = value;
        else if (which == 2)
            o->faces = strcmp(value, "faces") == 0, o->text = strcmp(value, "text") == 0;
        else if (which == 3)
            o->json = value;
        else
            NetKeep(value, which == 5);
    }
    o->photos = argv + i;
    o->count = argc - i;
    if (o->count > 0 && (o->faces || o->text))
        return 1;
    fputs(o->count > 0 ? "detect: --only is neither faces nor text\n" : "detect: which photographs?\n", stderr);
    return -1;
}

int main(int argc, char **argv) {
    Options o;
    int what = ReadOptions(argc, argv, &o);
    if (what < 0)
        fputs(usage, stderr);
    if (what <= 0)
        return what ? 2 : 0;
    if (mkdir(o.out, 0777) != 0 && errno != EEXIST) {
        perror(o.out);
        return 1;
    }
    return Run(&o) ? 0 : 1;
}
