/* Messages as JSON: values of every kind, and bytes that are no message. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "golden_vector.h"
#include "ndt_proto/message.h"
#include "run_tests.h"

static const char *const vectors[] = {"scan", "result_state", "result_lost", "imu", "request_pose", "reply"};
enum { VECTOR_COUNT = sizeof(vectors) / sizeof(vectors[0]) };

static struct ndt_error error;

static char *json_of(const char *vector, enum ndt_status expected)
{
    const struct golden_vector golden = golden_read(vector);
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    ck_assert_int_eq(ndt_message_print_json(stream, golden.bytes, golden.size, &error), expected);
    fclose(stream);
    return text;
}

TEST(messages_become_json)
{
    char *text = json_of("result_state", NDT_OK);
    ck_assert_ptr_eq(strstr(text, "\"seq\":303,\"stamp_ns\":1317042272349000123,\"frame_id\":\"map\","), text);
    ck_assert_ptr_nonnull(strstr(text, ",\"weak_axes\":[],\"transform_probability\":1.75,"));
    ck_assert_ptr_nonnull(strstr(text, ",\"map_id\":18364758544493064720,"));
    ck_assert_ptr_nonnull(strstr(text, ",\"state\":\"coasting\",\"margin\":0.125,\"guess\":[1.25,2,3,0,0,0,1],"
                                       "\"hypotheses\":300"));
    free(text);
    text = json_of("result_lost", NDT_OK);
    ck_assert_ptr_nonnull(strstr(text, "\"nvtl\":null,"));
    free(text);
    text = json_of("reply", NDT_OK);
    ck_assert_ptr_nonnull(
        strstr(text, "\"running\":false,\"map\":{\"id\":1,\"levels\":[4,2]},\"timings\":[[1,2.5],[]]"));
    ck_assert_ptr_nonnull(strstr(text, "\"offset_ns\":-5000000000,"));
    ck_assert_ptr_nonnull(strstr(text, "\\\"0.1\\\""));
    free(text);
    free(json_of("scan", NDT_ERR_UNSUPPORTED)); /* binary data */
}

/* The points themselves are binary data. */
TEST(points_become_json_without_the_points)
{
    const struct golden_vector golden = golden_read("points");
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    ck_assert_int_eq(ndt_message_print_json(stream, golden.bytes, golden.size, &error), NDT_ERR_UNSUPPORTED);
    fclose(stream);
    free(text);
    stream = open_memstream(&text, &size);
    ck_assert_int_eq(ndt_points_print_json(stream, golden.bytes, golden.size, &error), NDT_OK);
    fclose(stream);
    ck_assert_ptr_eq(strstr(text, "\"seq\":"), text);
    ck_assert_ptr_nonnull(strstr(text, ",\"iterations\":[{\"iteration\":"));
    ck_assert_ptr_nonnull(strstr(text, ",\"candidates\":[{\"pose\":["));
    ck_assert_ptr_null(strstr(text, "data"));
    ck_assert_ptr_null(strstr(text, "count"));
    free(text);
}

TEST_EACH(any_bytes_become_json_or_an_error, 0, VECTOR_COUNT)
{
    const struct golden_vector golden = golden_read(vectors[_i]);
    FILE *null = fopen("/dev/null", "w");
    uint8_t *bytes = malloc(golden.size);
    memcpy(bytes, golden.bytes, golden.size);
    for (size_t size = 0; size < golden.size; size++)
        ck_assert_int_ne(ndt_message_print_json(null, bytes, size, &error), NDT_OK);
    for (size_t at = 0; at < golden.size; at++) {
        for (unsigned flip = 1; flip < 256; flip++) {
            bytes[at] = (uint8_t)(golden.bytes[at] ^ flip);
            (void)!ndt_message_print_json(null, bytes, golden.size, &error);
        }
        bytes[at] = golden.bytes[at];
    }
    free(bytes);
    fclose(null);
}
