//! Directed graphs of small numbers, and the shortest cycle through a node.

use std::collections::VecDeque;

/// Edges by their source node; nodes count from zero.
#[derive(Debug)]
pub(crate) struct Graph(Vec<Vec<usize>>);

impl Graph {
    pub(crate) fn new(nodes: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut graph = vec![Vec::new(); nodes];
        for (from, to) in edges {
            if from != to && !graph[from].contains(&to) {
                graph[from].push(to);
            }
        }
        Self(graph)
    }

    /// Returns the shortest cycle through a node, starting with it; `None` if it is in no cycle.
    pub(crate) fn cycle(&self, start: usize) -> Option<Vec<usize>> {
        let mut before: Vec<Option<usize>> = vec![None; self.0.len()];
        let mut waiting = VecDeque::from([start]);
        while let Some(node) = waiting.pop_front() {
            for &next in &self.0[node] {
                if next == start {
                    let mut cycle = vec![node];
                    while let Some(earlier) = before[cycle[cycle.len() - 1]] {
                        cycle.push(earlier);
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
                if before[next].is_none() {
                    before[next] = Some(node);
                    waiting.push_back(next);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Graph;

    #[test]
    fn shortest_cycle_through_node_is_found() {
        let graph = Graph::new(5, [(0, 1), (1, 2), (2, 0), (1, 3), (3, 1), (3, 4)]);
        assert_eq!(graph.cycle(0), Some(vec![0, 1, 2]));
        assert_eq!(graph.cycle(1), Some(vec![1, 3]));
        assert_eq!(graph.cycle(4), None);
    }

    #[test]
    fn self_edge_is_not_a_cycle() {
        assert_eq!(Graph::new(1, [(0, 0)]).cycle(0), None);
    }
}
