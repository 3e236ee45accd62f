/* Bytes of others for people to read. */
#include <stdbool.h>

#include "plain.h"

/* How many bytes the printable character at `text` has; 0: none is there. Of those outside ASCII, the second block of
 * control characters is left out, which terminals obey too. */
static size_t plain_character(const unsigned char *text, size_t length) {
    unsigned char first = text[0];
    if (first < 0x80)
        return first >= 0x20 && first != 0x7f && first != '\\';
    size_t size = first >= 0xf5 ? 0 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
    if (size == 0 || size > length || (first == 0xc2 && text[1] < 0xa0))
        return 0;
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    }
    return size;
}

/* Writes as much as fits, to `out` unless that is NULL; returns the columns. */
static int plain_write(FILE *out, const unsigned char *text, size_t length, int most) {
    int columns = 0;
    for (size_t i = 0; i < length;) {
        size_t size = plain_character(text + i, length - i);
        int more = size ? 1 : 4;
        if (most && columns + more > most)
            break;
        if (out && size)
            fwrite(text + i, 1, size, out);
        else if (out)
            fprintf(out, "\\x%02x", text[i]);
        columns += more;
        i += size ? size : 1;
    }
    return columns;
}

void plain_print(FILE *out, const void *bytes, size_t length, int width) {
    int columns = plain_write(out, bytes, length, width);
    if (width)
        fprintf(out, "%*s", width - columns, "");
}

int plain_width(const void *bytes, size_t length) {
    return plain_write(NULL, bytes, length, 0);
}
