#include "number_text.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SLOW_MAX = 400, DIGITS_MAX = 19 };

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t ndt_text_locale(void)
{
    pthread_once(&c_locale_once, make_locale);
    return c_locale;
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    return at;
}

/* A decimal number: its first 19 digits, and the power of ten that multiplies them. */
struct decimal {
    int negative;
    uint64_t digits;
    int kept;    /* digits kept, without leading zeros */
    int dropped; /* digits that do not fit; `digits` is then cut off */
    int first_dropped;
    int exponent;
};

static const char *scan_digits(struct decimal *out, const char *at, const char *end, int is_fraction, int *seen)
{
    for (; at < end && is_digit(*at); at++, *seen = 1) {
        if (out->kept < DIGITS_MAX) {
            out->digits = out->digits * 10 + (uint64_t)(*at - '0');
            out->kept += out->digits != 0;
            out->exponent -= is_fraction;
        } else {
            if (out->dropped++ == 0)
                out->first_dropped = *at - '0';
            out->exponent += !is_fraction;
        }
    }
    return at;
}

static const char *scan_exponent(struct decimal *out, const char *at, const char *end)
{
    const char *from = at + 1;
    const int negative = from < end && *from == '-';
    if (from < end && (*from == '-' || *from == '+'))
        from++;
    int value = 0;
    const char *digit = from;
    for (; digit < end && is_digit(*digit); digit++)
        value = value < 100000 ? value * 10 + (*digit - '0') : value;
    if (digit == from)
        return NULL;
    out->exponent += negative ? -value : value;
    return digit;
}

/* Scans a number; NULL if the text is not a plain decimal number followed by a blank or the end. */
static const char *scan_decimal(struct decimal *out, const char *at, const char *end)
{
    int seen = 0;
    memset(out, 0, sizeof(*out));
    if (at < end && (*at == '-' || *at == '+'))
        out->negative = *at++ == '-';
    at = scan_digits(out, at, end, 0, &seen);
    if (at < end && *at == '.')
        at = scan_digits(out, at + 1, end, 1, &seen);
    if (seen && at < end && (*at == 'e' || *at == 'E'))
        at = scan_exponent(out, at, end);
    return seen && at && (at == end || is_blank(*at)) ? at : NULL;
}

/* Computes a mantissa below 2^53 times or over an exact power of ten, which is rounded once and therefore correct.
 */
static int exact_real(const struct decimal *in, double *out)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (in->dropped || in->digits >> 53 || in->exponent < -22 || in->exponent > 22)
        return 0;
    const double mantissa = in->negative ? -(double)in->digits : (double)in->digits;
    *out = in->exponent < 0 ? mantissa / power[-in->exponent] : mantissa * power[in->exponent];
    return 1;
}

static int slow_real(const char *word, size_t length, double *out)
{
    char text[SLOW_MAX];
    char *stop = text;
    if (length == 0 || length >= sizeof(text) || !ndt_text_locale())
        return 0;
    memcpy(text, word, length);
    text[length] = '\0';
    const locale_t callers = uselocale(ndt_text_locale());
    *out = strtod(text, &stop);
    uselocale(callers);
    return stop == text + length;
}

int ndt_text_real(const char **at, const char *end, double *out)
{
    struct decimal decimal;
    const char *begin = skip_blanks(*at, end);
    const char *stop = scan_decimal(&decimal, begin, end);
    if (!stop || !exact_real(&decimal, out)) {
        const char *word;
        size_t length;
        stop = begin;
        if (!ndt_text_word(&stop, end, &word, &length) || !slow_real(word, length, out))
            return 0;
    }
    *at = stop;
    return 1;
}

int ndt_text_whole(const char **at, const char *end, int64_t *out)
{
    const char *digit = skip_blanks(*at, end);
    const int negative = digit < end && *digit == '-';
    if (digit < end && (*digit == '-' || *digit == '+'))
        digit++;
    const char *begin = digit;
    uint64_t value = 0;
    for (; digit < end && is_digit(*digit); digit++)
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*digit - '0'), &value))
            return 0;
    if (digit == begin || (digit < end && !is_blank(*digit)) || (negative && value > (uint64_t)1 << 63))
        return 0;
    *out = (int64_t)(negative ? 0 - value : value);
    *at = digit;
    return 1;
}

/* Computes digits * 10^exponent as an integer, halves away from zero; 0 when it does not fit int64. */
static int scale_whole(const struct decimal *in, int64_t *out)
{
    uint64_t value = in->digits;
    int exponent = in->exponent;
    int last = in->dropped ? in->first_dropped : 0; /* first digit that was dropped */
    for (; exponent > 0 && value != 0; exponent--)
        if (__builtin_mul_overflow(value, (uint64_t)10, &value))
            return 0;
    for (; exponent < 0 && (value != 0 || last != 0); exponent++) {
        last = (int)(value % 10);
        value /= 10;
    }
    value += last >= 5;
    if (value > (uint64_t)INT64_MAX)
        return 0;
    *out = in->negative ? -(int64_t)value : (int64_t)value;
    return 1;
}

int ndt_text_seconds(const char **at, const char *end, int64_t *out_ns)
{
    struct decimal decimal;
    const char *stop = scan_decimal(&decimal, skip_blanks(*at, end), end);
    if (!stop)
        return 0;
    decimal.exponent += 9;
    if (!scale_whole(&decimal, out_ns))
        return 0;
    *at = stop;
    return 1;
}

int ndt_text_word(const char **at, const char *end, const char **word, size_t *length)
{
    const char *begin = skip_blanks(*at, end);
    const char *stop = begin;
    while (stop < end && !is_blank(*stop))
        stop++;
    if (stop == begin)
        return 0;
    *word = begin;
    *length = (size_t)(stop - begin);
    *at = stop;
    return 1;
}

int ndt_text_is(const char *word, size_t length, const char *expected)
{
    return strlen(expected) == length && memcmp(word, expected, length) == 0;
}

int ndt_text_done(const char *at, const char *end)
{
    return skip_blanks(at, end) == end;
}
