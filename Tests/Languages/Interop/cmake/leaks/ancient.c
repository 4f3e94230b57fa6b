#ifdef __STDC_VERSION__
#if __STDC_VERSION__ >= 199901L
#error "Compiled as a later C than the project asked for"
#endif
#endif
#ifndef __STRICT_ANSI__
#error "Compiled with the extensions that the project has turned off"
#endif

int main(void) { return 0; }
