int weighted_sum(const int *values, int count);
int twice(int value);
int same(unsigned value);
unsigned digits(unsigned value);

int main(void)
{
    const int values[] = {1, 2, 4};
    return weighted_sum(values, 3) != 21 || twice(0) != 0 || same(1) != 0 || digits(42) != 2;
}
