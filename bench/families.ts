/**
 * Families of synthetic matrices, by which rules and models are judged on what they were not made with: one draws its
 * structure from a few parameters and a seed, and each tells apart what another has together (skew, locality, blocks, rows
 * without elements, shape). Nothing here is read from a file, so that figures can be made again anywhere.
 */

import { Random } from '../src/run/bind/random-tensors.ts'
import { shuffled } from './power-law.ts'

/** A pattern: rows and columns of the elements, in any order, maybe repeated. */
export interface Pattern {
  readonly shape: readonly [rows: number, columns: number]
  readonly rows: Int32Array
  readonly columns: Int32Array
}

export interface Family {
  readonly about: string
  /** `size`: about how many rows there are. */
  make(size: number, random: Random): Pattern
}

class Edges {
  readonly #rows: number[] = []
  readonly #columns: number[] = []

  add(row: number, column: number): void {
    this.#rows.push(row)
    this.#columns.push(column)
  }

  pattern(rows: number, columns = rows): Pattern {
    return {
      shape: [rows, columns],
      rows: Int32Array.from(this.#rows),
      columns: Int32Array.from(this.#columns),
    }
  }
}

/** A node of n, those with small numbers more often: of density proportional to x^-skew (0: all alike). */
const skewed = (random: Random, n: number, skew: number): number =>
  Math.min(n - 1, Math.floor(n * random.next() ** (1 / (1 - skew))))

/** Both ends by weight, ids at random (Chung and Lu, 2002). */
const powerLaw = (skew: number, degree: number): Family => ({
  about: `power law, skew ${skew}, ${degree} a row, random ids`,
  make(n, random) {
    const ids = shuffled(n, random)
    const edges = new Edges()
    for (let e = 0; e < (n * degree) / 2; e++) {
      const [a, b] = [ids[skewed(random, n, skew)]!, ids[skewed(random, n, skew)]!]
      edges.add(a, b)
      edges.add(b, a)
    }
    return edges.pattern(n)
  },
})

/** Neighbours on a ring, a share of the edges rewired (Watts and Strogatz, 1998). */
const smallWorld = (degree: number, rewired: number): Family => ({
  about: `small world, ${degree} neighbours on a ring, ${rewired * 100} % rewired`,
  make(n, random) {
    const edges = new Edges()
    for (let i = 0; i < n; i++)
      for (let k = 1; k <= degree / 2; k++) {
        const j = random.next() < rewired ? random.below(n) : (i + k) % n
        edges.add(i, j)
        edges.add(j, i)
      }
    return edges.pattern(n)
  },
})

const uniform = (degree: number): Family => ({
  about: `uniform, ${degree} a row (Erdős and Rényi, 1959)`,
  make(n, random) {
    const edges = new Edges()
    for (let e = 0; e < n * degree; e++) edges.add(random.below(n), random.below(n))
    return edges.pattern(n)
  },
})

const banded = (width: number, filled: number): Family => ({
  about: `banded, ${width} on each side, ${filled * 100} % of them`,
  make(n, random) {
    const edges = new Edges()
    for (let i = 0; i < n; i++)
      for (let j = Math.max(0, i - width); j <= Math.min(n - 1, i + width); j++)
        if (i === j || random.next() < filled) edges.add(i, j)
    return edges.pattern(n)
  },
})

/** Nodes of a cube with `unknowns` unknowns each, coupled with the 27 nodes around: dense blocks, as finite elements give. */
const finiteElements = (unknowns: number): Family => ({
  about: `finite elements on a cube, ${unknowns} unknowns a node`,
  make(n) {
    const side = Math.max(2, Math.round((n / unknowns) ** (1 / 3)))
    const edges = new Edges()
    const near = (c: number): readonly number[] => [c - 1, c, c + 1].filter((x) => x >= 0 && x < side)
    const node = (x: number, y: number, z: number): number => (x * side + y) * side + z
    for (let x = 0; x < side; x++)
      for (let y = 0; y < side; y++)
        for (let z = 0; z < side; z++)
          for (const u of near(x))
            for (const v of near(y))
              for (const w of near(z))
                for (let a = 0; a < unknowns; a++)
                  for (let b = 0; b < unknowns; b++)
                    edges.add(node(x, y, z) * unknowns + a, node(u, v, w) * unknowns + b)
    return edges.pattern(side ** 3 * unknowns)
  },
})

const blocks = (block: number, perRow: number): Family => ({
  about: `dense blocks of ${block} × ${block}, ${perRow} a row of blocks`,
  make(size, random) {
    const across = Math.max(1, Math.round(size / block))
    const edges = new Edges()
    for (let b = 0; b < across; b++)
      for (let k = 0; k < perRow; k++) {
        const at = random.below(across)
        for (let i = 0; i < block; i++)
          for (let j = 0; j < block; j++) edges.add(b * block + i, at * block + j)
      }
    return edges.pattern(across * block)
  },
})

/** Users and what they took: many rows, few columns, columns by popularity. */
const bipartite = (wide: number, degree: number): Family => ({
  about: `bipartite, ${wide} rows to a column, ${degree} a row, popular columns`,
  make(n, random) {
    const columns = Math.max(1, Math.round(n / wide))
    const edges = new Edges()
    for (let i = 0; i < n; i++) {
      const own = 1 + random.below(2 * degree - 1)
      for (let k = 0; k < own; k++) edges.add(i, skewed(random, columns, 0.6))
    }
    return edges.pattern(n, columns)
  },
})

/** A grid of crossings with some streets missing, numbered in strips as surveys are. */
const road: Family = {
  about: 'road network: a grid with a fifth of the streets missing',
  make(n, random) {
    const side = Math.max(2, Math.round(Math.sqrt(n)))
    const edges = new Edges()
    const street = (a: number, b: number): void => {
      if (random.next() < 0.2) return
      edges.add(a, b)
      edges.add(b, a)
    }
    for (let x = 0; x < side; x++)
      for (let y = 0; y < side; y++) {
        if (y + 1 < side) street(x * side + y, x * side + y + 1)
        if (x + 1 < side) street(x * side + y, (x + 1) * side + y)
      }
    return edges.pattern(side * side)
  },
}

/** A layer's weights of which the largest stay: rows of nearly one length. */
const pruned = (kept: number): Family => ({
  about: `pruned layer, ${kept * 100} % of the weights kept`,
  make(size, random) {
    const n = Math.max(64, Math.round(size / 16))
    const edges = new Edges()
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) if (random.next() < kept) edges.add(i, j)
    return edges.pattern(n)
  },
})

/** A few rows have a tenth of all columns each, the others hardly any. */
const hubs = (count: number, degree: number): Family => ({
  about: `${count} hubs with a tenth of all columns, ${degree} in other rows`,
  make(n, random) {
    const edges = new Edges()
    const ids = shuffled(n, random)
    for (let h = 0; h < Math.min(n, count); h++)
      for (let k = 0; k < n / 10; k++) {
        const j = random.below(n)
        edges.add(ids[h]!, j)
        edges.add(j, ids[h]!)
      }
    for (let i = 0; i < n; i++) for (let k = 0; k < degree; k++) edges.add(i, random.below(n))
    return edges.pattern(n)
  },
})

const emptyRows = (share: number, degree: number): Family => ({
  about: `${share * 100} % of the rows empty, ${degree} in the others`,
  make(n, random) {
    const edges = new Edges()
    for (let i = 0; i < n; i++)
      if (random.next() >= share) for (let k = 0; k < degree; k++) edges.add(i, random.below(n))
    return edges.pattern(n)
  },
})

export const FAMILIES: Readonly<Record<string, Family>> = {
  'power-law-mild': powerLaw(0.4, 16),
  'power-law': powerLaw(0.6, 16),
  'power-law-steep': powerLaw(0.75, 16),
  'small-world': smallWorld(12, 0.1),
  uniform: uniform(12),
  'uniform-sparse': uniform(2),
  banded: banded(24, 0.5),
  'finite-elements': finiteElements(3),
  blocks: blocks(8, 6),
  bipartite: bipartite(8, 20),
  road,
  'pruned-layer': pruned(0.1),
  hubs: hubs(8, 4),
  'empty-rows': emptyRows(0.7, 20),
}

/** Rows of a member where nothing else is said. */
const USUAL = 40_000

/** A member of a family: `road`, `road:100000` (about so many rows), `road:100000:7` (the seed). */
export function member(name: string): Pattern | undefined {
  const [family, size = String(USUAL), seed = '1', ...more] = name.split(':')
  const known = FAMILIES[family!]
  const [n, s] = [Number(size), Number(seed)]
  if (!known || more.length > 0 || !Number.isInteger(n) || n < 1 || !Number.isInteger(s)) return undefined
  return known.make(n, new Random(s))
}
