/** Families of extreme shapes: one dense row, very short rows, very wide or very tall matrices, rows that are equal. */
import { Edges, type Family, skewed } from './edges.ts'

/** A dense first row and column and the diagonal (arrowhead): one row holds a third of the elements. */
export const arrow: Family = {
  description: 'arrowhead: the diagonal, the first row and the first column',
  defaultSize: 80_000,
  generate(n) {
    const edges = new Edges()
    for (let i = 0; i < n; i++) {
      edges.add(i, i)
      edges.add(0, i)
      edges.add(i, 0)
    }
    return edges.pattern(n)
  },
}

/** A de Bruijn graph of k-mers: each has up to four successors, whose numbers are four neighbours far away. */
export const kmer: Family = {
  description: 'k-mer graph: 1 to 4 successors a row, neighbours of each other',
  defaultSize: 400_000,
  generate(n, random) {
    const edges = new Edges()
    for (let i = 0; i < n; i++) {
      const first = (4 * i) % n
      const own = 1 + Math.min(3, Math.floor(4 * random.next() ** 2))
      for (let k = 0; k < own; k++) edges.add(i, (first + k) % n)
    }
    return edges.pattern(n)
  },
}

/** Users and items: `wide` users to an item, both by popularity. */
export const userItem = (wide: number, degree: number): Family => ({
  description: `users × items, ${wide} users to an item, ${degree} a user, both by popularity`,
  defaultSize: 60_000,
  generate(n, random) {
    const items = Math.max(1, Math.round(n / wide))
    const edges = new Edges()
    for (let e = 0; e < n * degree; e++) edges.add(skewed(random, n, 0.5), skewed(random, items, 0.6))
    return edges.pattern(n, items)
  },
})

/** A layer's weights that unstructured pruning left: 4 outputs to 3 inputs. */
export const prunedWide = (kept: number): Family => ({
  description: `pruned layer of 4 : 3, ${kept * 100} % of the weights kept`,
  defaultSize: 4096,
  generate(rows, random) {
    const columns = Math.max(1, Math.round((rows * 3) / 4))
    const edges = new Edges()
    for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) if (random.next() < kept) edges.add(i, j)
    return edges.pattern(rows, columns)
  },
})

/** Few long rows over very many columns. */
export const shortWide = (wide: number, filled: number): Family => ({
  description: `short and wide: ${wide} columns to a row, ${filled * 100} % filled`,
  defaultSize: 256,
  generate(rows, random) {
    const columns = rows * wide
    const edges = new Edges()
    for (let i = 0; i < rows; i++)
      for (let k = 0; k < columns * filled; k++) edges.add(i, random.below(columns))
    return edges.pattern(rows, columns)
  },
})

/** Runs of `least` to `most` neighbouring rows that have the same columns (supernodes of a factorisation), unaligned. */
export const supernodes = (least: number, most: number, degree: number): Family => ({
  description: `supernodes: ${least} to ${most} rows with the same ${degree} columns`,
  generate(n, random) {
    const edges = new Edges()
    for (let i = 0; i < n; ) {
      const end = Math.min(n, i + least + random.below(most - least + 1))
      const columns = Array.from({ length: degree }, () => random.below(n))
      for (; i < end; i++) for (const j of columns) edges.add(i, j)
    }
    return edges.pattern(n)
  },
})
