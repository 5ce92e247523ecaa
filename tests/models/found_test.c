/* What examples/detect makes of its networks' results: faces, lines, text; without networks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faces.h"
#include "lines.h"
#include "reading.h"

/* Faces. */

static float near_scores[512], near_boxes[512 * 16], far_scores[384], far_boxes[384 * 16];

static void clear(void) {
    for (int i = 0; i < 512; i++)
        near_scores[i] = -200; /* a sigmoid of 0, and no overflow */
    for (int i = 0; i < 384; i++)
        far_scores[i] = -200;
    memset(near_boxes, 0, sizeof near_boxes);
    memset(far_boxes, 0, sizeof far_boxes);
}

static void test_no_face(void **state) {
    (void)state;
    Face faces[FACES_MOST];
    clear();
    assert_int_equal(FacesFind(near_scores, near_boxes, far_scores, far_boxes, 256, .5f, faces), 0);
    near_scores[7] = -.01f;
    assert_int_equal(FacesFind(near_scores, near_boxes, far_scores, far_boxes, 256, .5f, faces), 0);
}

static void test_one_face(void **state) {
    (void)state;
    Face faces[FACES_MOST];
    clear();
    /* Row 2, column 5 of 16 x 16, its second anchor: centre (5.5, 2.5) / 16. */
    int anchor = 2 * (2 * 16 + 5) + 1;
    near_scores[anchor] = 2;
    float *box = near_boxes + 16 * anchor;
    box[0] = 8, box[1] = -16, box[2] = 64, box[3] = 32, box[14] = 12.8f, box[15] = 25.6f;
    assert_int_equal(FacesFind(near_scores, near_boxes, far_scores, far_boxes, 256, .5f, faces), 1);
    assert_float_equal(faces[0].score, 1 / (1 + exp(-2)), 1e-6);
    assert_float_equal(faces[0].left, 5.5 / 16 + 8. / 256 - 32. / 256, 1e-6);
    assert_float_equal(faces[0].right, 5.5 / 16 + 8. / 256 + 32. / 256, 1e-6);
    assert_float_equal(faces[0].top, 2.5 / 16 - 16. / 256 - 16. / 256, 1e-6);
    assert_float_equal(faces[0].bottom, 2.5 / 16 - 16. / 256 + 16. / 256, 1e-6);
    assert_float_equal(faces[0].x[5], 5.5 / 16 + .05, 1e-6);
    assert_float_equal(faces[0].y[5], 2.5 / 16 + .1, 1e-6);
}

static void test_faces_overlap(void **state) {
    (void)state;
    Face faces[FACES_MOST];
    clear();
    /* Two anchors of one place of 8 x 8 with boxes a little apart, and a far one elsewhere. */
    const int places[] = {6 * 9, 6 * 9 + 1, 6 * 60};
    for (int i = 0; i < 3; i++) {
        far_scores[places[i]] = i == 1 ? 3 : 1;
        far_boxes[16 * places[i]] = i == 0 ? 8 : 0;
        far_boxes[16 * places[i] + 2] = far_boxes[16 * places[i] + 3] = 64;
    }
    assert_int_equal(FacesFind(near_scores, near_boxes, far_scores, far_boxes, 256, .5f, faces), 2);
    double a = 1 / (1 + exp(-3)), b = 1 / (1 + exp(-1)), left = 1.5 / 8 - 32. / 256;
    assert_float_equal(faces[0].score, a, 1e-6);
    assert_float_equal(faces[0].left, (a * left + b * (left + 8. / 256)) / (a + b), 1e-6);
    assert_float_equal(faces[1].left, 4.5 / 8 - 32. / 256, 1e-6);
    assert_true(faces[0].score > faces[1].score);
}

/* Lines. */

enum { SIDE = 120, PITCH = 130 };
static float map[SIDE * PITCH];

/* A rectangle around a centre, turned by `angle`. */
static void paint(double cx, double cy, double w, double h, double angle, float value) {
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            double u = (x - cx) * cos(angle) + (y - cy) * sin(angle), v = (y - cy) * cos(angle) - (x - cx) * sin(angle);
            if (fabs(u) <= w / 2 && fabs(v) <= h / 2)
                map[y * PITCH + x] = value;
        }
}

static void wipe(void) {
    memset(map, 0, sizeof map);
    for (int y = 0; y < SIDE; y++) /* beyond the map: must not be seen */
        for (int x = SIDE; x < PITCH; x++)
            map[y * PITCH + x] = 1;
}

static void assert_corner(const Line *l, int corner, double x, double y, double within) {
    if (fabs((double)l->x[corner] - x) > within || fabs((double)l->y[corner] - y) > within)
        fail_msg("corner %d is (%f, %f), expected (%f, %f)", corner, (double)l->x[corner], (double)l->y[corner], x, y);
}

static void test_no_line(void **state) {
    (void)state;
    Line lines[LINES_MOST];
    wipe();
    assert_int_equal(LinesFind(map, SIDE, SIDE, PITCH, lines), 0);
    map[5 * PITCH + 5] = 1;        /* a pixel */
    paint(60, 60, 50, 1, 0, 1);    /* thin */
    paint(60, 90, 30, 10, 0, .5f); /* faint: no line, though its pixels are text */
    assert_int_equal(LinesFind(map, SIDE, SIDE, PITCH, lines), 0);
}

static void test_straight_lines(void **state) {
    (void)state;
    Line lines[LINES_MOST];
    wipe();
    paint(80, 22, 40, 10, 0, .9f);
    paint(30, 20, 40, 10, 0, .8f); /* lower than 10 pixels apart: to the left comes first */
    paint(60, 80, 80, 16, 0, .7f);
    assert_int_equal(LinesFind(map, SIDE, SIDE, PITCH, lines), 3);
    /* 40 x 10, grown by 40 * 10 * 1.5 / (2 * 50) = 6 on each side. */
    assert_float_equal(lines[0].score, .8f, 1e-5);
    assert_corner(&lines[0], 0, 10 - 6, 15 - 6, 1e-3);
    assert_corner(&lines[0], 2, 50 + 6, 25 + 6, 1e-3);
    assert_corner(&lines[1], 0, 60 - 6, 17 - 6, 1e-3);
    assert_corner(&lines[1], 1, 100 + 6, 17 - 6, 1e-3);
    assert_corner(&lines[1], 3, 60 - 6, 27 + 6, 1e-3);
    assert_float_equal(lines[2].score, .7f, 1e-5);
}

static void test_turned_line(void **state) {
    (void)state;
    Line lines[LINES_MOST];
    double angle = .3, w = 70, h = 14, grow = w * h * 1.5 / (2 * (w + h)), u = w / 2 + grow, v = h / 2 + grow;
    wipe();
    paint(60, 60, w, h, angle, 1);
    assert_int_equal(LinesFind(map, SIDE, SIDE, PITCH, lines), 1);
    static const int sign[4][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}};
    for (int i = 0; i < 4; i++)
        assert_corner(&lines[0], i, 60 + sign[i][0] * u * cos(angle) - sign[i][1] * v * sin(angle),
                      60 + sign[i][0] * u * sin(angle) + sign[i][1] * v * cos(angle), 2);
}

static void test_hostile_maps(void **state) {
    (void)state;
    static Line lines[LINES_MOST];
    wipe();
    paint(60, 60, 500, 500, 0, 1); /* all of it */
    assert_int_equal(LinesFind(map, SIDE, SIDE, PITCH, lines), 1);
    for (int i = 0; i < SIDE * PITCH; i++)
        map[i] = NAN;
    assert_int_equal(LinesFind(map, SIDE, SIDE, PITCH, lines), 0);
    for (int i = 0; i < SIDE * PITCH; i++)
        map[i] = i / PITCH % 6 < 4 && i % PITCH % 6 < 4 ? 1 : 0; /* 400 squares */
    assert_int_equal(LinesFind(map, SIDE, SIDE, PITCH, lines), LINES_MOST);
    assert_int_equal(LinesFind(map, 0, 0, 0, lines), 0);
}

/* Text. */

static void test_decode(void **state) {
    (void)state;
    static const char *const characters[] = {"", "a", "b", "\xe8\xaf\xbb", " "};
    Alphabet alphabet = {.characters = (const char **)(uintptr_t)characters, .count = 5};
    static const int best[] = {0, 1, 1, 0, 1, 2, 0, 0, 3, 3, 4, 2};
    float rows[12 * 5] = {0};
    char text[64], little[3];
    for (int t = 0; t < 12; t++)
        rows[5 * t + best[t]] = t == 4 ? .4f : 1;
    assert_float_equal(TextDecode(&alphabet, rows, 12, 5, text, sizeof text), (5 + .4) / 6, 1e-6);
    assert_string_equal(text, "aab\xe8\xaf\xbb b");
    TextDecode(&alphabet, rows, 12, 5, little, sizeof little);
    assert_string_equal(little, "aa");
    assert_float_equal(TextDecode(&alphabet, rows, 1, 5, text, sizeof text), 0, 0);
    assert_string_equal(text, "");
}

static void test_alphabet(void **state) {
    (void)state;
    char path[64];
    Alphabet a;
    snprintf(path, sizeof path, "/tmp/found_test_%ld", (long)getpid());
    FILE *file = fopen(path, "w");
    fputs("x\ny\r\nz", file);
    fclose(file);
    assert_true(AlphabetRead(path, &a));
    assert_int_equal(a.count, 5);
    assert_string_equal(a.characters[1], "x");
    assert_string_equal(a.characters[2], "y");
    assert_string_equal(a.characters[3], "z");
    assert_string_equal(a.characters[4], " ");
    AlphabetFree(&a);
    unlink(path);
    assert_false(AlphabetRead(path, &a));
}

/* A picture whose red is the column and whose green is the row. */
static void test_cut(void **state) {
    (void)state;
    uint8_t pixels[100 * 100 * 3];
    const Picture picture = {100, 100, pixels};
    float out[3 * 4 * 10];
    for (int i = 0; i < 100 * 100; i++)
        pixels[3 * i] = (uint8_t)(i % 100), pixels[3 * i + 1] = (uint8_t)(i / 100), pixels[3 * i + 2] = 7;
    const Line line = {{10, 30, 30, 10}, {20, 20, 30, 30}, 1};
    assert_float_equal(LineProportion(&line), 2, 1e-6);
    LineCut(&picture, &line, false, 4, 10, 8, out);
    /* Column 0 of 8: from 10 to 12.5, its middle is 11.25; row 3 of 4: from 27.5 to 30. */
    assert_float_equal((out[2 * 40] + 1) * 127.5f, 11.25, 1e-3);
    assert_float_equal((out[2 * 40 + 7] + 1) * 127.5f, 28.75, 1e-3);
    assert_float_equal((out[40 + 30] + 1) * 127.5f, 28.75, 1e-3);
    assert_float_equal((out[0] + 1) * 127.5f, 7, 1e-3);
    assert_float_equal(out[2 * 40 + 8], 0, 0);
    LineCut(&picture, &line, true, 4, 10, 8, out);
    assert_float_equal((out[2 * 40] + 1) * 127.5f, 28.75, 1e-3);
    /* One that stands is read from its upper right corner downwards. */
    const Line standing = {{10, 20, 20, 10}, {20, 20, 60, 60}, 1};
    assert_float_equal(LineProportion(&standing), 4, 1e-6);
    LineCut(&picture, &standing, false, 4, 10, 10, out);
    assert_float_equal((out[40] + 1) * 127.5f, 22, 1e-3);
    assert_float_equal((out[2 * 40] + 1) * 127.5f, 18.75, 1e-3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_face),        cmocka_unit_test(test_one_face),
        cmocka_unit_test(test_faces_overlap),  cmocka_unit_test(test_no_line),
        cmocka_unit_test(test_straight_lines), cmocka_unit_test(test_turned_line),
        cmocka_unit_test(test_hostile_maps),   cmocka_unit_test(test_decode),
        cmocka_unit_test(test_alphabet),       cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
