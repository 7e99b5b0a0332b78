/* What is left to chance in the emulation: one sequence for everything, from NDT_EMULATION_SEED (1). */
#ifndef EMULATED_CHANCE_H
#define EMULATED_CHANCE_H

unsigned emulated_chance(unsigned limit); /* 0 .. limit - 1 */
/* Begins again as if NDT_EMULATION_SEED had been this: for tests that try several orders. */
void emulated_set_seed(unsigned seed);

#endif
