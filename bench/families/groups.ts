/**
 * Families of groups of pairs, each group with a matrix of weights of its own: relations of a graph, offsets of a sparse
 * convolution, experts that tokens are routed to.
 */
import type { Random } from '../../src/run/bind/sources/random-tensors.ts'
import { permutation as shuffled } from '../../src/run/bind/sources/random-tensors.ts'
import { skewed } from './edges.ts'
import type { MatrixFamily } from './matrix-family.ts'

/** Pairs of a row and a column in groups, in any order, maybe repeated. */
export interface GroupPattern {
  readonly shape: readonly [groups: number, rows: number, columns: number]
  readonly coords: readonly [group: Int32Array, row: Int32Array, column: Int32Array]
}

export type GroupFamily = MatrixFamily<GroupPattern>

/** Pairs as they come. */
class Pairs {
  readonly #all: [number[], number[], number[]] = [[], [], []]

  add(group: number, row: number, column: number): void {
    this.#all[0].push(group)
    this.#all[1].push(row)
    this.#all[2].push(column)
  }

  pattern(...shape: [groups: number, rows: number, columns: number]): GroupPattern {
    const [g, i, j] = this.#all
    return { shape, coords: [Int32Array.from(g), Int32Array.from(i), Int32Array.from(j)] }
  }
}

/** Edges between nodes by weight, of relations by weight, and the same the other way round as relations of their own. */
const relations = (count: number, skew: number, degree: number): GroupFamily => ({
  description: `${count} relations and their inverse ones, skew ${skew}, ${degree} edges a node, power law of degrees`,
  generate(n, random) {
    const ids = shuffled(n, random)
    const pairs = new Pairs()
    for (let e = 0; e < (n * degree) / 2; e++) {
      const relation = skewed(random, count, skew)
      const [a, b] = [ids[skewed(random, n, 0.6)]!, ids[skewed(random, n, 0.6)]!]
      pairs.add(relation, a, b)
      pairs.add(count + relation, b, a)
    }
    return pairs.pattern(2 * count, n, n)
  },
})

/** What height a random surface has at a place: a few waves of different lengths, none steeper than another. */
function surface(side: number, random: Random): (x: number, y: number) => number {
  const waves = Array.from({ length: 4 }, () => {
    const length = side / (2 + 14 * random.next())
    const [angle, phase] = [2 * Math.PI * random.next(), 2 * Math.PI * random.next()]
    const f = (2 * Math.PI) / length
    return { x: f * Math.cos(angle), y: f * Math.sin(angle), phase, height: length / 12 }
  })
  return (x, y) => Math.round(waves.reduce((z, w) => z + w.height * Math.cos(w.x * x + w.y * y + w.phase), 0))
}

/** Voxels of a random surface with those of the 27 around that there are, an offset a group: a submanifold convolution's map. */
const voxels = (kept: number, order: 'raster' | 'random'): GroupFamily => ({
  description: `kernel map of a random surface, ${kept * 100} % of its voxels, numbered in ${order} order`,
  generate(n, random) {
    const side = Math.max(2, Math.round(Math.sqrt(n / kept)))
    const height = surface(side, random)
    const places: [x: number, y: number, z: number][] = []
    const at = new Int32Array(side * side).fill(-1)
    for (let x = 0; x < side; x++)
      for (let y = 0; y < side; y++)
        if (random.next() < kept) {
          at[x * side + y] = places.length
          places.push([x, y, height(x, y)])
        }
    const ids = order === 'random' ? shuffled(places.length, random) : Int32Array.from(places, (_, k) => k)
    const pairs = new Pairs()
    for (const [k, [x, y, z]] of places.entries())
      for (let u = Math.max(0, x - 1); u <= Math.min(side - 1, x + 1); u++)
        for (let v = Math.max(0, y - 1); v <= Math.min(side - 1, y + 1); v++) {
          const other = at[u * side + v]!
          const up = other < 0 ? 2 : places[other]![2] - z
          if (Math.abs(up) <= 1) pairs.add((u - x + 1) * 9 + (v - y + 1) * 3 + up + 1, ids[k]!, ids[other]!)
        }
    return pairs.pattern(27, places.length, places.length)
  },
})

const EXPERTS = 64

/**
 * Tokens go to experts by popularity (Zipf), to `each` different ones, token by token and the first drawn first; of every eight
 * experts the last may get none.
 */
const routing = (
  zipf: number,
  { idle = false, each = 1, experts = EXPERTS }: { idle?: boolean; each?: number; experts?: number } = {},
): GroupFamily => ({
  description: `routing to ${experts} experts, Zipf ${zipf}, ${each} a token${idle ? ', every eighth expert idle' : ''}`,
  defaultSize: 8192,
  generate(tokens, random) {
    const below = new Float64Array(experts + 1)
    for (let e = 0; e < experts; e++) below[e + 1] = below[e]! + (idle && e % 8 === 7 ? 0 : (e + 1) ** -zipf)
    const pairs = new Pairs()
    for (let t = 0; t < tokens; t++) {
      const chosen = new Set<number>()
      while (chosen.size < each) {
        const u = random.next() * below[experts]!
        chosen.add(below.findIndex((b) => b > u) - 1)
      }
      for (const e of chosen) pairs.add(e, t, t)
    }
    return pairs.pattern(experts, tokens, tokens)
  },
})

/** Routings of so many experts, each of which gets `each` of them for every token, or as many as its name says. */
export const routings = (experts: number, each?: number): Readonly<Record<string, GroupFamily>> => {
  const of = (own: { idle?: boolean; each?: number } = {}) => ({
    ...own,
    experts,
    ...(each === undefined ? {} : { each }),
  })
  return {
    routing: routing(1, of()),
    'routing-uniform': routing(0, of()),
    'routing-steep': routing(1.5, of()),
    'routing-idle': routing(1, of({ idle: true })),
    'routing-two': routing(1, of({ each: 2 })),
  }
}

/** What the groups are. */
export type GroupKind = 'relations' | 'offsets' | 'experts'

export const GROUP_FAMILIES: Readonly<Record<GroupKind, Readonly<Record<string, GroupFamily>>>> = {
  relations: {
    relations: relations(100, 0.6, 16),
    'relations-few': relations(8, 0.3, 16),
    'relations-many': relations(1000, 0.8, 16),
  },
  offsets: {
    voxels: voxels(1, 'raster'),
    'voxels-thin': voxels(0.4, 'random'),
  },
  experts: routings(EXPERTS),
}
