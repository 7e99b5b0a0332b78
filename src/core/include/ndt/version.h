/** @file
 * @brief Which ndtd this is. */
#ifndef NDT_VERSION_H
#define NDT_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/** Such as "0.1.0". */
const char *ndt_version(void);
/** The commit of its source, 12 hexadecimal digits; "unknown": neither a repository nor an archive of one. */
const char *ndt_commit(void);

#ifdef __cplusplus
}
#endif
#endif
