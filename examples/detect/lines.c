#include "lines.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* As PaddleOCR's post-processing sets them. */
static const float isText = 0.3f, scoreLeast = 0.6f, grow = 1.5f, sideLeast = 3, grownLeast = 5, sameRow = 10;

typedef struct Point {
    float x, y;
} Point;

typedef struct Box {
    Point centre, along; /* along: a unit vector; the other side is at a right angle */
    float length, thickness;
} Box;

/* Scratch of one map. */
typedef struct Map {
    const float *values;
    int width, height, pitch;
    unsigned char *seen;
    int *stack;        /* places still to be visited */
    int *first, *last; /* by row: the outermost pixels of the part at hand */
    Point *points, *hull;
} Map;

static bool Open(Map *m) {
    size_t pixels = (size_t)m->width * (size_t)m->height, rows = (size_t)m->height;
    m->seen = calloc(pixels + 1, 1);
    m->stack = malloc((pixels + 1) * sizeof *m->stack);
    m->first = malloc((2 * rows + 1) * sizeof *m->first);
    m->last = m->first ? m->first + rows : NULL;
    m->points = malloc((6 * rows + 4) * sizeof *m->points);
    m->hull = m->points ? m->points + 2 * rows : NULL;
    return m->seen && m->stack && m->first && m->points;
}

static void Close(Map *m) {
    free(m->seen);
    free(m->stack);
    free(m->first);
    free(m->points);
}

/* Visits the part that a pixel belongs to (eight neighbours); its rows are [*top, *bottom]. */
static void Visit(Map *m, int start, int *top, int *bottom) {
    int n = 0;
    m->stack[n++] = start;
    m->seen[start] = 1;
    *top = *bottom = start / m->width;
    m->first[*top] = m->last[*top] = start % m->width;
    while (n) {
        int place = m->stack[--n], y = place / m->width, x = place % m->width;
        m->first[y] = x < m->first[y] ? x : m->first[y];
        m->last[y] = x > m->last[y] ? x : m->last[y];
        for (int k = 0; k < 9; k++) {
            int ny = y + k / 3 - 1, nx = x + k % 3 - 1, next = ny * m->width + nx;
            if (ny < 0 || ny >= m->height || nx < 0 || nx >= m->width || m->seen[next] ||
                m->values[ny * m->pitch + nx] <= isText)
                continue;
            for (; ny < *top; m->first[*top] = m->width, m->last[*top] = -1)
                --*top;
            for (; ny > *bottom; m->first[*bottom] = m->width, m->last[*bottom] = -1)
                ++*bottom;
            m->seen[next] = 1;
            m->stack[n++] = next;
        }
    }
}

static int ByPlace(const void *a, const void *b) {
    const Point *p = a, *q = b;
    return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->y > q->y) - (p->y < q->y);
}

static float Turn(Point a, Point b, Point c) {
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/* The convex hull (Andrew's monotone chain). Returns its corners' number. */
static int FindHull(Point *points, int n, Point *hull) {
    int k = 0;
    qsort(points, (size_t)n, sizeof *points, ByPlace);
    for (int i = 0; i < n; i++) {
        while (k >= 2 && Turn(hull[k - 2], hull[k - 1], points[i]) <= 0)
            k--;
        hull[k++] = points[i];
    }
    for (int i = n - 2, least = k + 1; i >= 0; i--) {
        while (k >= least && Turn(hull[k - 2], hull[k - 1], points[i]) <= 0)
            k--;
        hull[k++] = points[i];
    }
    return k > 1 ? k - 1 : k;
}

static Box BoxAlong(const Point *hull, int n, Point along) {
    float least = INFINITY, most = -INFINITY, low = INFINITY, high = -INFINITY;
    for (int i = 0; i < n; i++) {
        float u = hull[i].x * along.x + hull[i].y * along.y, v = hull[i].y * along.x - hull[i].x * along.y;
        least = fminf(least, u);
        most = fmaxf(most, u);
        low = fminf(low, v);
        high = fmaxf(high, v);
    }
    float u = (least + most) / 2, v = (low + high) / 2;
    return (Box){{u * along.x - v * along.y, u * along.y + v * along.x}, along, most - least, high - low};
}

/* The box of least area: one of its sides lies on a side of the hull. */
static Box SmallestBox(const Point *hull, int n) {
    Box best = BoxAlong(hull, n, (Point){1, 0});
    for (int i = 0; i < n; i++) {
        Point a = hull[i], b = hull[(i + 1) % n];
        float length = hypotf(b.x - a.x, b.y - a.y);
        if (length == 0)
            continue;
        Box box = BoxAlong(hull, n, (Point){(b.x - a.x) / length, (b.y - a.y) / length});
        if (box.length * box.thickness < best.length * best.thickness)
            best = box;
    }
    return best;
}

static float MeanInside(const Map *m, const Box *b) {
    float reach = (b->length + b->thickness) / 2 + 1, sum = 0;
    int count = 0;
    for (int y = (int)fmaxf(0, b->centre.y - reach); y < m->height && (float)y <= b->centre.y + reach; y++)
        for (int x = (int)fmaxf(0, b->centre.x - reach); x < m->width && (float)x <= b->centre.x + reach; x++) {
            float dx = (float)x - b->centre.x, dy = (float)y - b->centre.y;
            if (fabsf(dx * b->along.x + dy * b->along.y) > b->length / 2 + 0.5f ||
                fabsf(dy * b->along.x - dx * b->along.y) > b->thickness / 2 + 0.5f)
                continue;
            sum += m->values[y * m->pitch + x];
            count++;
        }
    return count ? sum / (float)count : 0;
}

/* Corners in reading order: of the two left ones the upper is the first. */
static Line Corners(const Box *b, float score) {
    Point p[4];
    Line line = {.score = score};
    for (int i = 0; i < 4; i++) {
        float u = (i & 1 ? 0.5f : -0.5f) * b->length, v = (i & 2 ? 0.5f : -0.5f) * b->thickness;
        p[i] = (Point){b->centre.x + u * b->along.x - v * b->along.y, b->centre.y + u * b->along.y + v * b->along.x};
    }
    qsort(p, 4, sizeof p[0], ByPlace);
    int topLeft = p[0].y > p[1].y, topRight = 2 + (p[2].y > p[3].y);
    const int order[] = {topLeft, topRight, 5 - topRight, 1 - topLeft};
    for (int i = 0; i < 4; i++) {
        line.x[i] = p[order[i]].x;
        line.y[i] = p[order[i]].y;
    }
    return line;
}

static bool FindLine(Map *m, int start, Line *out) {
    int top, bottom, n = 0;
    Visit(m, start, &top, &bottom);
    for (int y = top; y <= bottom; y++) {
        m->points[n++] = (Point){(float)m->first[y], (float)y};
        if (m->last[y] != m->first[y])
            m->points[n++] = (Point){(float)m->last[y], (float)y};
    }
    Box box = SmallestBox(m->hull, FindHull(m->points, n, m->hull));
    if (fminf(box.length, box.thickness) < sideLeast)
        return false;
    float score = MeanInside(m, &box);
    if (score < scoreLeast)
        return false;
    float more = box.length * box.thickness * grow / (2 * (box.length + box.thickness));
    box.length += 2 * more;
    box.thickness += 2 * more;
    *out = Corners(&box, score);
    return fminf(box.length, box.thickness) >= grownLeast;
}

static int FromTop(const void *a, const void *b) {
    const Line *p = a, *q = b;
    return p->y[0] != q->y[0] ? (p->y[0] > q->y[0]) - (p->y[0] < q->y[0]) : (p->x[0] > q->x[0]) - (p->x[0] < q->x[0]);
}

/* From the top; those of nearly the same height from the left. */
static void Sort(Line *lines, int n) {
    qsort(lines, (size_t)n, sizeof *lines, FromTop);
    for (int i = 1; i < n; i++)
        for (int k = i;
             k > 0 && fabsf(lines[k].y[0] - lines[k - 1].y[0]) < sameRow && lines[k].x[0] < lines[k - 1].x[0]; k--) {
            Line line = lines[k];
            lines[k] = lines[k - 1];
            lines[k - 1] = line;
        }
}

int LinesFind(const float *map, int width, int height, int pitch, Line *lines) {
    Map m = {.values = map, .width = width, .height = height, .pitch = pitch};
    int n = Open(&m) ? 0 : -1;
    for (int place = 0; n >= 0 && place < width * height && n < LINES_MOST; place++)
        if (!m.seen[place] && map[place / width * pitch + place % width] > isText)
            n += FindLine(&m, place, &lines[n]);
    Close(&m);
    if (n > 0)
        Sort(lines, n);
    return n;
}
