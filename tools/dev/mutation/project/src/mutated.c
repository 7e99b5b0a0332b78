/* One mutant of each outcome: see selftest.sh. */
#define WEIGHT 3

int weighted_sum(const int *values, int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += WEIGHT * values[i];
    return sum;
}

int twice(int value)
{
    return 2 * value; /* tested with 0 only */
}

int never_called(int value)
{
    return value + 1;
}

int same(unsigned value)
{
    if (value < 0)
        return 1;
    return 0;
}

unsigned digits(unsigned value)
{
    unsigned count = 0;
    while (value) {
        value /= 10;
        count++;
    }
    return count;
}

_Static_assert(1 + 1 == 2, "not compiled when it is wrong");
