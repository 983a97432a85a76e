/** Families of what is no graph: grids of numerics, factors, texts and constraints. */
import { Edges, type Family, skewed } from './edges.ts'

/** Points of a cube with their six neighbours, numbered line by line: three pairs of diagonals, far from each other. */
export const stencil: Family = {
  description: 'finite differences on a cube, seven points',
  generate(n) {
    const side = Math.max(2, Math.round(n ** (1 / 3)))
    const edges = new Edges()
    const strides = [1, side, side * side]
    for (let i = 0; i < side ** 3; i++) {
      edges.add(i, i)
      for (const s of strides) {
        const at = Math.floor(i / s) % side
        if (at > 0) edges.add(i, i - s)
        if (at < side - 1) edges.add(i, i + s)
      }
    }
    return edges.pattern(side ** 3)
  },
}

/** Below the diagonal, a share of what is there, and denser to the end: factors of elimination. */
export const triangular = (filled: number): Family => ({
  description: `lower triangular, ${100 * filled} % of the last rows filled, less before`,
  generate(size, random) {
    const n = Math.max(64, Math.round(size / 8))
    const edges = new Edges()
    for (let i = 0; i < n; i++) {
      edges.add(i, i)
      const share = filled * (i / n)
      for (let j = 0; j < i; j++) if (random.next() < share) edges.add(i, j)
    }
    return edges.pattern(n)
  },
})

/** Texts and the words in them: lengths differ by orders of magnitude (log-normal), words by popularity. */
export const documents = (words: number, spread: number): Family => ({
  description: `texts of ${words} words in the middle, lengths log-normal by ${spread}, popular words`,
  generate(n, random) {
    const vocabulary = Math.max(8, 2 * n)
    const edges = new Edges()
    for (let i = 0; i < n; i++) {
      const own = Math.min(vocabulary, Math.max(1, Math.round(words * Math.exp(spread * random.normal()))))
      for (let k = 0; k < own; k++) edges.add(i, skewed(random, vocabulary, 0.7))
    }
    return edges.pattern(n, vocabulary)
  },
})

/** Few rows over many columns: a row over a range of its own, and a tenth of the rows over all of them. */
export const constraints = (columns: number, own: number): Family => ({
  description: `constraints: ${columns} columns a row, ${own} of its own; a tenth of the rows over all`,
  generate(n, random) {
    const rows = Math.max(64, Math.round(n / columns))
    const edges = new Edges()
    for (let i = 0; i < rows; i++)
      if (random.next() < 0.1) for (let k = 0; k < n / 16; k++) edges.add(i, random.below(n))
      else
        for (let k = 0; k < own; k++) edges.add(i, Math.min(n - 1, i * columns + random.below(2 * columns)))
    return edges.pattern(rows, n)
  },
})
