/* Arrays and pictures that `doppel run` reads: every type, both orders, damaged and hostile files, resizing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "npy.h"
#include "raster.h"

static char path[64], message[NPY_MESSAGE];

static int setup(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/doppel_files_%ld", (long)getpid());
    return 0;
}
static int teardown(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

static void write_bytes(const void *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* A file of version 1 with this header text and these data. */
static void write_npy(int version, const char *header, const void *data, size_t bytes) {
    static unsigned char all[1 << 16];
    size_t n = strlen(header), at = 8;
    memcpy(all, "\x93NUMPY", 6);
    all[6] = (unsigned char)version;
    all[7] = 0;
    all[at++] = (unsigned char)(n & 255);
    all[at++] = (unsigned char)(n >> 8);
    if (version > 1)
        all[at++] = 0, all[at++] = 0;
    memcpy(all + at, header, n);
    memcpy(all + at + n, data, bytes);
    write_bytes(all, at + n + bytes);
}

static void test_round_trip(void **state) {
    (void)state;
    static const char *const descr[] = {"<f4", "<f2", "<f8", "|i1", "|u1", "<i2", "<u2",
                                        "<i4", "<u4", "<i8", "<u8", "|b1", "<c8", "<c16"};
    static const int sizes[] = {4, 2, 8, 1, 1, 2, 2, 4, 4, 8, 8, 1, 8, 16};
    const int64_t dims[] = {2, 3, 1};
    unsigned char data[6 * 16];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + 1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        npy_array a;
        size_t bytes = 6 * (size_t)sizes[i];
        assert_true(npy_write(path, descr[i], dims, 3, data, bytes, message));
        if (!npy_read(path, &a, message))
            fail_msg("%s: %s", descr[i], message);
        assert_int_equal(a.kind, descr[i][1]);
        assert_int_equal(a.item_bytes, sizes[i]);
        assert_int_equal(a.rank, 3);
        assert_memory_equal(a.dims, dims, sizeof dims);
        assert_int_equal(a.bytes, bytes);
        assert_memory_equal(a.data, data, bytes);
        npy_free(&a);
    }
}

static void test_scalars_and_empty(void **state) {
    (void)state;
    npy_array a;
    const float one = 1.5f;
    const int64_t none[] = {0, 4};
    assert_true(npy_write(path, "<f4", NULL, 0, &one, 4, message));
    assert_true(npy_read(path, &a, message));
    assert_int_equal(a.rank, 0);
    assert_memory_equal(a.data, &one, 4);
    npy_free(&a);
    assert_true(npy_write(path, "<f4", none, 2, NULL, 0, message));
    assert_true(npy_read(path, &a, message));
    assert_int_equal(a.bytes, 0);
    npy_free(&a);
}

static void test_fortran_order(void **state) {
    (void)state;
    const int16_t columns[] = {0, 3, 1, 4, 2, 5}, rows[] = {0, 1, 2, 3, 4, 5};
    npy_array a;
    write_npy(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }\n", columns, sizeof columns);
    assert_true(npy_read(path, &a, message));
    assert_memory_equal(a.data, rows, sizeof rows);
    npy_free(&a);
    /* Three dims: element (i, j, k) of a 2x2x2 array lies at i + 2 j + 4 k. */
    const uint8_t cube[] = {0, 100, 10, 110, 1, 101, 11, 111}, straight[] = {0, 1, 10, 11, 100, 101, 110, 111};
    write_npy(2, "{'shape': (2, 2, 2), 'fortran_order': True, 'descr': '|u1'}\n", cube, sizeof cube);
    assert_true(npy_read(path, &a, message));
    assert_memory_equal(a.data, straight, sizeof straight);
    npy_free(&a);
}

static void test_big_endian(void **state) {
    (void)state;
    const unsigned char big[] = {0, 0, 1, 2, 0xff, 0xff, 0xff, 0xfe};
    const int32_t expected[] = {258, -2};
    npy_array a;
    write_npy(3, "{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }\n", big, sizeof big);
    assert_true(npy_read(path, &a, message));
    assert_memory_equal(a.data, expected, sizeof expected);
    npy_free(&a);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *header, *says;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }\n", "cut off"},
        {"{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }\n", "no plain number"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }\n", "no plain number"},
        {"{'descr': '|O8', 'fortran_order': False, 'shape': (1,), }\n", "no plain number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }\n", "no shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4611686018427387904,), }\n",
         "no shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,), }\n", "no shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693952,), }\n", "cut off"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4", "no shape"},
        {"{'descr': '<f4', 'shape': (4,), }\n", "Fortran"},
        {"{}\n", "no plain number"},
    };
    npy_array a;
    const float data[4] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_npy(1, cases[i].header, data, sizeof data);
        assert_false(npy_read(path, &a, message));
        assert_null(a.data);
        if (!strstr(message, cases[i].says))
            fail_msg("expected \"%s\" in \"%s\"", cases[i].says, message);
    }
    write_bytes("\x93NUMPY\x01\x00\xff\xff{", 11);
    assert_false(npy_read(path, &a, message));
    write_bytes("\x93NUMPY\x02\x00\xff\xff\xff\xff{", 13);
    assert_false(npy_read(path, &a, message));
    write_bytes("no array", 8);
    assert_false(npy_read(path, &a, message));
    assert_false(npy_read("/nonexistent/a.npy", &a, message));
    assert_non_null(strstr(message, "No such file"));
    assert_false(npy_write("/nonexistent/a.npy", "<f4", NULL, 0, data, 4, message));
}

/* Pictures. */

static raster of_columns(int width, int height) {
    raster r = {width, height, malloc(3 * (size_t)width * (size_t)height)};
    assert_non_null(r.pixels);
    for (int i = 0; i < width * height; i++)
        memset(r.pixels + 3 * i, i % width * 10, 3);
    return r;
}

static void test_resize(void **state) {
    (void)state;
    raster r = of_columns(4, 2), out;
    assert_true(raster_resize(&r, 4, 2, RASTER_EXACT, &out, message));
    assert_memory_equal(r.pixels, out.pixels, 24);
    raster_free(&out);
    assert_false(raster_resize(&r, 2, 2, RASTER_EXACT, &out, message));
    assert_non_null(strstr(message, "4 x 2"));
    /* 4 -> 2: each lies in the middle of two: 5 and 25. 4 -> 8: a quarter and three quarters of the way. */
    assert_true(raster_resize(&r, 2, 1, RASTER_STRETCH, &out, message));
    assert_int_equal(out.pixels[0], 5);
    assert_int_equal(out.pixels[3], 25);
    raster_free(&out);
    assert_true(raster_resize(&r, 8, 2, RASTER_STRETCH, &out, message));
    static const uint8_t eight[] = {0, 3, 8, 13, 18, 23, 28, 30}; /* 2.5, 7.5 and so on are rounded up */
    for (int i = 0; i < 8; i++)
        assert_int_equal(out.pixels[3 * i], eight[i]);
    raster_free(&out);
    /* 4x2 into 4x4: a black line above and below; 2x2 out of the middle. */
    assert_true(raster_resize(&r, 4, 4, RASTER_PAD, &out, message));
    assert_int_equal(out.pixels[3 * 3], 0);
    assert_int_equal(out.pixels[3 * (4 + 3)], 30);
    assert_int_equal(out.pixels[3 * (12 + 3)], 0);
    raster_free(&out);
    assert_true(raster_resize(&r, 2, 2, RASTER_CROP, &out, message));
    assert_int_equal(out.pixels[0], 10);
    assert_int_equal(out.pixels[3], 20);
    raster_free(&out);
    raster_free(&r);
}

static void test_pictures(void **state) {
    (void)state;
    raster r;
    assert_true(raster_read(PICTURE, &r, message));
    assert_true(r.width > 100 && r.height > 100);
    raster_free(&r);
    FILE *file = fopen(PICTURE, "rb");
    static unsigned char bytes[1 << 16];
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t cut = 4; cut < n / 2; cut += n / 50 + 1) { /* a PNG whose data end too early */
        write_bytes(bytes, cut);
        assert_false(raster_read(path, &r, message));
        assert_null(r.pixels);
    }
    write_bytes("\xff\xd8\xff\xe0 no picture", 15);
    assert_false(raster_read(path, &r, message));
    write_bytes("plain text", 10);
    assert_false(raster_read(path, &r, message));
    assert_non_null(strstr(message, "neither"));
    assert_false(raster_read("/nonexistent.png", &r, message));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_scalars_and_empty),
        cmocka_unit_test(test_fortran_order), cmocka_unit_test(test_big_endian),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_resize),
        cmocka_unit_test(test_pictures),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
