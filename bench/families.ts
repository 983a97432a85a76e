/**
 * Families of synthetic matrices, by which rules and models are judged on what they were not made with: one draws its
 * structure from a few parameters and a seed, and each tells apart what another has together (skew, locality, blocks, rows
 * without elements, shape). Nothing here is read from a file, so that figures can be made again anywhere.
 */

import { type Random, permutation as shuffled } from '../src/run/bind/sources/random-tensors.ts'
import { Edges, type Family, type Pattern, skewed } from './families/edges.ts'
import { arrow, kmer, prunedWide, shortWide, supernodes, userItem } from './families/extremes.ts'
import {
  citations,
  communities,
  geometric,
  hubs,
  powerLaw,
  recursive,
  road,
  smallWorld,
} from './families/graphs.ts'
import { generateMember, type MatrixFamily } from './families/matrix-family.ts'
import { constraints, documents, stencil, triangular } from './families/tables.ts'

const uniform = (degree: number): Family => ({
  description: `uniform, ${degree} a row (Erdős and Rényi, 1959)`,
  generate(n, random) {
    const edges = new Edges()
    for (let e = 0; e < n * degree; e++) edges.add(random.below(n), random.below(n))
    return edges.pattern(n)
  },
})

const banded = (width: number, filled: number): Family => ({
  description: `banded, ${width} on each side, ${filled * 100} % of them`,
  generate(n, random) {
    const edges = new Edges()
    for (let i = 0; i < n; i++)
      for (let j = Math.max(0, i - width); j <= Math.min(n - 1, i + width); j++)
        if (i === j || random.next() < filled) edges.add(i, j)
    return edges.pattern(n)
  },
})

/** Nodes of a cube with `unknowns` unknowns each, coupled with the 27 nodes around: dense blocks, as finite elements give. */
const finiteElements = (unknowns: number): Family => ({
  description: `finite elements on a cube, ${unknowns} unknowns a node`,
  generate(n) {
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

/** A layer of a mixed-radix topology (RadiX-Net; Robinett and Kepner, 2019): rows that lie apart have the same columns. */
const mixedRadix = (radix: number): Family => ({
  description: `mixed-radix layer, ${radix} columns a row, the same in ${radix} rows that lie apart`,
  generate(n) {
    const stride = Math.max(1, Math.floor(n / radix))
    const edges = new Edges()
    for (let i = 0; i < stride * radix; i++)
      for (let k = 0; k < radix; k++) edges.add(i, (i % stride) + k * stride)
    return edges.pattern(stride * radix)
  },
})

/** Rows and columns of another family in any order, as a mesh has them whose nodes came so. */
const renumbered = (of: Family): Family => ({
  description: `${of.description}, numbered at random`,
  generate(n, random) {
    const { shape, rows, columns } = of.generate(n, random)
    const size = Math.max(...shape)
    const place = shuffled(size, random)
    const moved = (of: Int32Array): Int32Array => of.map((k) => place[k]!)
    return { shape: [size, size], rows: moved(rows), columns: moved(columns) }
  },
})

const blocks = (block: number, perRow: number): Family => ({
  description: `dense blocks of ${block} × ${block}, ${perRow} a row of blocks`,
  generate(size, random) {
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
  description: `bipartite, ${wide} rows to a column, ${degree} a row, popular columns`,
  generate(n, random) {
    const columns = Math.max(1, Math.round(n / wide))
    const edges = new Edges()
    for (let i = 0; i < n; i++) {
      const own = 1 + random.below(2 * degree - 1)
      for (let k = 0; k < own; k++) edges.add(i, skewed(random, columns, 0.6))
    }
    return edges.pattern(n, columns)
  },
})

/** A layer's weights of which the largest stay: rows of nearly one length. */
const pruned = (kept: number): Family => ({
  description: `pruned layer, ${kept * 100} % of the weights kept`,
  generate(size, random) {
    const n = Math.max(64, Math.round(size / 16))
    const edges = new Edges()
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) if (random.next() < kept) edges.add(i, j)
    return edges.pattern(n)
  },
})

const emptyRows = (share: number, degree: number): Family => ({
  description: `${share * 100} % of the rows empty, ${degree} in the others`,
  generate(n, random) {
    const edges = new Edges()
    for (let i = 0; i < n; i++)
      if (random.next() >= share) for (let k = 0; k < degree; k++) edges.add(i, random.below(n))
    return edges.pattern(n)
  },
})

/** Windows along the diagonal and a few whole rows and columns: patterns of attention (Beltagy, Peters and Cohan, 2020). */
const windowed = (window: number, whole: number): Family => ({
  description: `${window} on each side of the diagonal, ${whole} whole rows and columns`,
  generate(n, random) {
    const edges = new Edges()
    for (let w = 0; w < whole; w++) {
      const node = random.below(n)
      for (let k = 0; k < n; k++) {
        edges.add(node, k)
        edges.add(k, node)
      }
    }
    for (let i = 0; i < n; i++)
      for (let j = Math.max(0, i - window); j <= Math.min(n - 1, i + window); j++) edges.add(i, j)
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
  'finite-elements-shuffled': renumbered(finiteElements(3)),
  'mixed-radix': mixedRadix(32),
  blocks: blocks(8, 6),
  bipartite: bipartite(8, 20),
  road,
  'pruned-layer': pruned(0.1),
  hubs: hubs(8, 4),
  'empty-rows': emptyRows(0.7, 20),
  communities: communities(256, 60, 0.6),
  'r-mat': recursive(16),
  geometric: geometric(8),
  citations: citations(3),
  windowed: windowed(32, 4),
  stencil,
  triangular: triangular(0.1),
  documents: documents(40, 1.2),
  constraints: constraints(16, 24),
  arrow,
  'k-mer': kmer,
  'user-item': userItem(15, 25),
  pruned: prunedWide(0.1),
  'short-wide': shortWide(470, 0.02),
  supernodes: supernodes(5, 40, 24),
}

export type { Family, MatrixFamily, Pattern, Random }

/**
 * A member of a family: `road`, `road:100000` (about so many rows), `road:100000:7` (the seed).
 * @throws SptError `families/too-large`
 */
export const generateMatrix = (name: string): Pattern | undefined => generateMember(FAMILIES, name)
