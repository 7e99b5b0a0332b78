#include "map_legend.h"

#include <math.h>
#include <string.h>

/* Dots: of a letter with the gap to the next one, of the strip's parts, and of the map's side for each dot. */
enum { LETTER = 6, ROWS = 7, MARGIN = 6, GAP = 4, BAR = 8, SIDE_PER_DOT = 300, DOTS_MAX = 4 };
enum { STRIP = 2 * MARGIN + 2 * ROWS + BAR + 2 * GAP };

/* Rows of five dots from the top, the left one in bit 4. */
static const struct {
    char letter;
    unsigned char rows[ROWS];
} font[] = {
    {'0', {0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e}}, {'1', {0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e}},
    {'2', {0x0e, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1f}}, {'/', {0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x00}},
    {'a', {0x00, 0x00, 0x0e, 0x01, 0x0f, 0x11, 0x0f}}, {'b', {0x10, 0x10, 0x1e, 0x11, 0x11, 0x11, 0x1e}},
    {'c', {0x00, 0x00, 0x0e, 0x11, 0x10, 0x11, 0x0e}}, {'d', {0x01, 0x01, 0x0f, 0x11, 0x11, 0x11, 0x0f}},
    {'e', {0x00, 0x00, 0x0e, 0x11, 0x1f, 0x10, 0x0e}}, {'i', {0x04, 0x00, 0x0c, 0x04, 0x04, 0x04, 0x0e}},
    {'l', {0x0c, 0x04, 0x04, 0x04, 0x04, 0x04, 0x0e}}, {'m', {0x00, 0x00, 0x1a, 0x15, 0x15, 0x15, 0x15}},
    {'n', {0x00, 0x00, 0x16, 0x19, 0x11, 0x11, 0x11}}, {'o', {0x00, 0x00, 0x0e, 0x11, 0x11, 0x11, 0x0e}},
    {'r', {0x00, 0x00, 0x16, 0x19, 0x10, 0x10, 0x10}}, {'s', {0x00, 0x00, 0x0f, 0x10, 0x0e, 0x01, 0x1e}},
    {'t', {0x08, 0x08, 0x1c, 0x08, 0x08, 0x09, 0x06}}, {'v', {0x00, 0x00, 0x11, 0x11, 0x11, 0x0a, 0x04}},
};
enum { FONT = sizeof(font) / sizeof(font[0]) };

static int dots_of(const char *text)
{
    return LETTER * (int)strlen(text) - 1;
}

/* Both labels below the bar, with two letters between them. */
static int bar_dots(const struct map_legend *legend)
{
    return dots_of(legend->worst) + dots_of(legend->best) + 2 * LETTER;
}

int map_legend_room(const struct map_legend *legend, double min_m[2], double max_m[2], double scale_m)
{
    const double side = fmax(max_m[0] - min_m[0], max_m[1] - min_m[1]) / scale_m;
    const int dot = (int)fmin(fmax(round(side / SIDE_PER_DOT), 1), DOTS_MAX);
    min_m[1] -= STRIP * dot * scale_m;
    max_m[0] = fmax(max_m[0], min_m[0] + (bar_dots(legend) + 2 * MARGIN) * dot * scale_m);
    return dot;
}

/* Places are in dots from the upper left corner of the strip. */
struct strip {
    struct map_image *image;
    int dot;
};

static void fill(const struct strip *strip, int x, int y, int width, int height, const uint8_t rgb[3])
{
    const struct map_image *image = strip->image;
    const int64_t top = (int64_t)image->height - (int64_t)STRIP * strip->dot;
    for (int64_t row = top + y * strip->dot; row < top + (y + height) * strip->dot; row++)
        for (int64_t column = x * strip->dot; column < (x + width) * strip->dot; column++)
            if (row >= 0 && row < image->height && column < image->width)
                memcpy(image->rgb[row * image->width + column], rgb, 3);
}

static void write_text(const struct strip *strip, int x, int y, const char *text)
{
    static const uint8_t WHITE[3] = {255, 255, 255};
    for (; *text; text++, x += LETTER)
        for (int i = 0; i < FONT; i++)
            for (int k = 0; font[i].letter == *text && k < ROWS * 5; k++)
                if (font[i].rows[k / 5] >> (4 - k % 5) & 1)
                    fill(strip, x + k % 5, y + k / 5, 1, 1, WHITE);
}

void map_legend_draw(const struct map_legend *legend, struct map_image *image, int dot)
{
    static const uint8_t BLACK[3] = {0, 0, 0};
    const struct strip strip = {image, dot};
    const int bar = bar_dots(legend), bar_y = MARGIN + ROWS + GAP, label_y = bar_y + BAR + GAP;
    fill(&strip, 0, 0, (int)(image->width / (uint32_t)dot) + 1, STRIP, BLACK);
    write_text(&strip, MARGIN, MARGIN, legend->title);
    for (int x = 0; x < bar; x++) {
        uint8_t rgb[3];
        map_image_rating((double)x / (bar - 1), rgb);
        fill(&strip, MARGIN + x, bar_y, 1, BAR, rgb);
    }
    write_text(&strip, MARGIN, label_y, legend->worst);
    write_text(&strip, MARGIN + bar - dots_of(legend->best), label_y, legend->best);
}
