/** @file
 * @brief Graphs of kernels, and what of them the stream that runs them needs. */
#ifndef EMULATED_GRAPH_H
#define EMULATED_GRAPH_H

#include "emulated_grid.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cudaGraphSetConditional. */
void emulated_set_condition(uint64_t handle, unsigned value);

/* Ends the program unless the graph can be launched. */
void emulated_graph_check(cudaGraphExec_t exec);
/* No graph from before may be used from now on. */
void emulated_graphs_reset(void);
/* Runs a graph from its first node to its last. */
void emulated_graph_run(cudaGraphExec_t exec);
/* Adds a place that will run the graph, or removes one. */
void emulated_graph_hold(cudaGraphExec_t exec, int more);

#ifdef __cplusplus
}
#endif
#endif
