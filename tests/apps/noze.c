/* SPDX-License-Identifier: MIT */
/* noze: makes no Level Zero call at all. */
int main(void)
{
    return 0;
}
