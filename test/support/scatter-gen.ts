/** Kernels that combine rows which a list names, and schedules that keep tiles of them: lists empty, of one, repeated, about a tile. */
import { coords, dense } from '../../src/api/tensors.ts'
import type { Inputs } from '../../src/run/bind/index.ts'
import type { Choices } from './choices.ts'

export interface Scatter {
  readonly text: string
  readonly inputs: Inputs
}

const REDUCERS = ['+', '+', 'max', 'min', 'and', 'or'] as const

/** Lengths of a list by what there is to get wrong in tiles of `tile`. */
const length = (c: Choices, tile: number): number =>
  c.pick([0, 1, tile, tile - 1, tile + 1, 2 * tile, 2 * tile + 1])

/** The list of one tensor: its rows may repeat, anywhere. */
function byValue(c: Choices, tile: number): Scatter {
  const [m, a, p, n] = [c.pick([1, 2, 5]), length(c, tile), c.pick([1, 2, 3, 0]), c.pick([1, 4, 5])]
  // Conditions on rows, and on where the list is read, which runs beyond its end else.
  const [row, where] = c.pick([
    ['L[a]', ''],
    ['L[a]', ''],
    ['L[a]', 'a % 3 != 1'],
    ['L[a]', 'p != 1'],
    ['L[a]', 'L[a] != 1'],
    ['L[a + 1]', 'a + 1 < s'],
    ['L[a + 1]', 'a + 1 + p < s'],
    ['L[a] - 1', 'L[a] > 0'],
  ] as const)
  const op = c.pick(REDUCERS)
  const update = `${op}=`
  const bool = op === 'and' || op === 'or'
  const value = bool ? 'X[a, p] > B[p, j]' : 'X[a, p] * B[p, j]'
  const values = (count: number): Int32Array => Int32Array.from({ length: count }, () => c.below(7) - 3)
  return {
    text: `kernel k(m: size, s: size, q: size, n: size) {
  axis r = dense_fixed(m)
  axis a = dense_fixed(s)
  axis p = dense_fixed(q)
  axis j = dense_fixed(n)
  buffer L: i32[a] in
  buffer X: i32[a, p] in
  buffer B: i32[p, j] in
  buffer C: ${bool ? 'bool' : 'i32'}[r, j] out
  iterate sum [a, p, j] as RRS${where && ` where (${where})`} { C[${row}, j] ${update} ${value} }
}`,
    inputs: {
      tensors: {
        L: dense(
          [a],
          Int32Array.from({ length: a }, () => c.below(m)),
        ),
        X: dense([a, p], values(a * p)),
        B: dense([p, n], values(p * n)),
      },
      params: { m, s: a, q: p, n },
    },
  }
}

/** Lists of a format, one for each block of columns: a row once in each, padded to whole tiles. */
function byFormat(c: Choices, tile: number): Scatter {
  const [e, m, p, n] = [c.pick([1, 3]), c.pick([1, tile, 2 * tile + 1]), c.pick([1, 2, 3]), c.pick([1, 4, 5])]
  const at: [number, number][] = []
  for (let k = 0; k < e; k++) {
    const many = Math.min(m, length(c, tile))
    const rows = Array.from({ length: m }, (_, r) => r)
    for (let x = 0; x < many; x++) at.push([k, rows.splice(c.below(rows.length), 1)[0]!])
  }
  at.sort((x, y) => x[0] - y[0] || x[1] - y[1])
  const values = (count: number): Int32Array => Int32Array.from({ length: count }, () => c.below(7) - 3)
  const padded = c.chance(50) ? ' padded with 0' : ''
  return {
    text: `format tiles(s) over (e, a) {
  axis eo = dense_fixed(e)
  axis go = dense_variable(eo, a)
  axis ao = sparse_fixed(go, a, s)${padded}
  map (e, a) -> (e, rank(a by e) / s, a)
  inverse (eo, go, ao) -> (eo, ao)
}
kernel k(m: size, experts: size, q: size, n: size) {
  axis e = dense_fixed(experts)
  axis a = sparse_variable(e, m)
  axis r = dense_fixed(m)
  axis p = dense_fixed(q)
  axis j = dense_fixed(n)
  buffer G: i32[e, a] in
  buffer X: i32[r, p] in
  buffer W: i32[e, p, j] in
  buffer C: i32[r, j] out
  iterate sum [e, a, p, j] as RRRS { C[a, j] += G[e, a] * X[a, p] * W[e, p, j] }
}`,
    inputs: {
      tensors: {
        G: coords([e, m], [at.map((x) => x[0]), at.map((x) => x[1])], values(at.length)),
        X: dense([m, p], values(m * p)),
        W: dense([e, p, n], values(e * p * n)),
      },
      params: { m, experts: e, q: p, n },
    },
  }
}

/** A kernel with a schedule that keeps a tile of listed rows, at a loop that is drawn, in registers or for a block. */
export function scattered(c: Choices): Scatter {
  const tile = c.pick([1, 2, 3, 4])
  const format = c.chance(50)
  const { text, inputs } = format ? byFormat(c, tile) : byValue(c, tile)
  const steps: string[] = []
  if (format) steps.push(`G as tiles(${tile})`, 'fuse (eo, go) -> ar0')
  const how = c.pick(['', 'atomic C', 'atomic C', 'combine C'])
  if (how) steps.push(how)
  const row = format ? 'sum.ao' : 'sum.a'
  if (format) steps.push(`split ${row} by ${c.pick([1, 2, tile])} -> (ax, ar)`)
  else steps.push(`split ${row} by ${tile} -> (ax, ar)`)
  steps.push(
    `split sum.j by ${c.pick([1, 2, 4])} -> (jo, jr)`,
    `split sum.p by ${c.pick([1, 2])} -> (po, pi)`,
  )
  const outer = format ? ['ar0', ...c.shuffle(['ax', 'jo'])] : c.shuffle(['ax', 'jo'])
  const inner = c.shuffle(['po', 'pi', 'ar', 'jr'])
  const order = [...outer, ...inner]
  steps.push(`reorder (${order.join(', ')})`)
  const parallel = how === 'atomic C'
  if (parallel && c.chance(80)) {
    steps.push(`bind ${order[0]} to block.x`)
    if (c.chance(60)) steps.push(`bind ${c.pick(['jr', 'ar', 'pi'])} to thread.x`)
    if (c.chance(30)) steps.push(`bind ${c.pick(['jr', 'ar'])} to thread.y`)
  }
  const at = c.pick([outer.at(-1)!, outer.at(-1)!, outer[0]!, inner[0]!])
  const target = how === 'combine C' && c.chance(50) ? 'C_partial' : 'C'
  steps.push(`cache_write ${target} at ${at} in ${c.pick(['register', 'register', 'shared'])} -> Cr`)
  return { text: `${text}\nschedule k.s {\n  ${steps.join('\n  ')}\n}`, inputs }
}
