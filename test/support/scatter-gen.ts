/** Kernels that combine rows which a list names, and schedules that keep tiles of them: lists empty, of one, repeated, about a tile. */
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import type { Inputs } from '../../src/run/bind/index.ts'
import type { Choices } from './choices.ts'
import { panelsText } from './tile-formats.ts'

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
  // Rows of X as they come, or those that the list names, too.
  const gathered = c.chance(50)
  // What lies under the conditions alone, at one place for all p.
  const next = row === 'L[a + 1]' ? 'a + 1' : 'a'
  const x = gathered ? `X[${row}, p]` : 'X[a, p]'
  const value = bool ? `${x} > B[p, j] * V[${next}]` : `${x} * B[p, j] * V[${next}]`
  const values = (count: number): Int32Array => Int32Array.from({ length: count }, () => c.below(7) - 3)
  return {
    text: `kernel k(m: size, s: size, q: size, n: size) {
  axis r = dense_fixed(m)
  axis a = dense_fixed(s)
  axis p = dense_fixed(q)
  axis j = dense_fixed(n)
  buffer L: i32[a] in
  buffer X: i32[${gathered ? 'r' : 'a'}, p] in
  buffer B: i32[p, j] in
  buffer V: i32[a] in
  buffer C: ${bool ? 'bool' : 'i32'}[r, j] out
  iterate sum [a, p, j] as RRS${where && ` where (${where})`} { C[${row}, j] ${update} ${value} }
}`,
    inputs: {
      tensors: {
        L: dense(
          [a],
          Int32Array.from({ length: a }, () => c.below(m)),
        ),
        X: gathered ? dense([m, p], values(m * p)) : dense([a, p], values(a * p)),
        B: dense([p, n], values(p * n)),
        V: dense([a], values(a)),
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
  const early = c.chance(60)
  const inner = early ? ['po', ...c.shuffle(['pi', 'ar', 'jr'])] : c.shuffle(['po', 'pi', 'ar', 'jr'])
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
  // Copies of what the tile reads, which ask for less than the rows of the tile do.
  for (const read of format ? ['X', 'W'] : ['X', 'B', 'V'])
    if (c.chance(50))
      steps.push(
        `cache_read ${read} at ${c.pick(read === 'V' ? [order.at(-1)!, 'ar'] : [early ? inner[0]! : outer.at(-1)!, inner[0]!, outer.at(-1)!])} in ${c.pick(['shared padded 0', 'shared', 'register'])}`,
      )
  return { text: `${text}\nschedule k.s {\n  ${steps.join('\n  ')}\n}`, inputs }
}

/**
 * A matrix by panels of rows, each with a list of the columns that it holds, and what its columns gather: threads have rows
 * of a panel, beyond the last of the matrix too, and fill the copies together.
 */
export function panels(c: Choices): Scatter {
  const [g, s] = [c.pick([2, 4]), c.pick([1, 2, 3])]
  const [m, k, n] = [c.pick([1, g - 1, g, 2 * g, 2 * g + 1]), c.pick([1, 3, 5]), c.pick([2, 4, 5])]
  const rows: [number, number][] = []
  for (let i = 0; i < m; i++)
    for (const col of c.shuffle(Array.from({ length: k }, (_, q) => q)).slice(0, c.below(k + 1)))
      rows.push([i, col])
  rows.sort((x, y) => x[0] - y[0] || x[1] - y[1])
  const values = (count: number): Int32Array => Int32Array.from({ length: count }, () => c.below(7) - 3)
  const padded = c.chance(70) ? ' padded with 0' : ''
  const where = c.pick(['', '', '', '', ' where (i != 1)', ' where (i < 3)'])
  const thread = c.shuffle(['thread.x', 'thread.y', 'thread.z'])
  const ways = [...c.shuffle(['io', 'fo', 'wi']), 'go']
  const how = (): string => c.pick(['shared', 'shared padded 0', 'register'])
  const steps = [
    `A as panels(${g}, ${s})`,
    n % 2 === 0 && c.chance(50) ? 'require n % 2 == 0' : '',
    'split f by 2 -> (fo, fi)',
    `split ii by ${c.pick([1, 2, 2, 3])} -> (wi, ir)`,
    `reorder (${[...ways, ...c.shuffle(['ir', 'fi', 'ko'])].join(', ')})`,
    ways[0] === 'io' && c.chance(80) ? 'bind io to block.x' : '',
    c.chance(80) ? `bind wi to ${thread[0]}` : '',
    c.chance(30) ? `bind fi to ${thread[1]}` : '',
    c.chance(70) ? `cache_write C at ${ways[2]} in register` : '',
    c.chance(70) ? `cache_read A at go in ${how()} -> As` : '',
    `cache_read X at go in ${how()} -> Xs`,
    c.chance(20) ? 'pipeline go by 2' : '',
  ]
  return {
    text: `${panelsText(padded)}
kernel k(m: size, k: size, n: size) {
  axis i = dense_fixed(m)
  axis p = sparse_variable(i, k)
  axis pd = dense_fixed(k)
  axis f = dense_fixed(n)
  buffer A: i32[i, p] in
  buffer X: i32[pd, f] in
  buffer C: i32[i, f] out
  iterate sum [i, p, f] as SRS${where} { C[i, f] += A[i, p] * X[p, f] }
}
schedule k.s {
  ${steps.filter((x) => x).join('\n  ')}
}`,
    inputs: {
      tensors: {
        A: coords([m, k], [rows.map((x) => x[0]), rows.map((x) => x[1])], values(rows.length)),
        X: dense([k, n], values(k * n)),
      },
      params: { m, k, n },
    },
  }
}

/** Tokens by expert, gates, and a sum of what experts make of them: the last at the end of tiles that the product completes. */
export function gated(c: Choices): Scatter {
  const s = c.pick([1, 2, 4])
  const [e, m, p, n] = [c.pick([1, 3]), c.pick([1, s, 2 * s + 1]), c.pick([1, 3, 0]), c.pick([4, 8, 5])]
  const at: [number, number][] = []
  for (let k = 0; k < e; k++) {
    const rows = c.shuffle(Array.from({ length: m }, (_, r) => r)).slice(0, Math.min(m, length(c, s)))
    at.push(...rows.map((r): [number, number] => [k, r]))
  }
  at.sort((x, y) => x[0] - y[0] || x[1] - y[1])
  const values = (count: number): Int32Array => Int32Array.from({ length: count }, () => c.below(7) - 3)
  const rest = c.pick(['', '', ' + 1', ' * 2'])
  const update = c.chance(95) ? '+=' : 'max='
  const rows = c.pick([s, s, 2, 1])
  const cols = c.pick([4, 4, 2, 8])
  const split = rows < s && s % rows === 0
  // Groups under experts in loops of their own, or fused into one.
  const segments = c.chance(30)
  const g = segments ? ['product.eo', 'product.go'] : ['g']
  const order = split
    ? [...g, 'oo', 'tx']
    : c.pick([
        [...g, 'oo'],
        ['oo', ...g],
      ])
  const steps = [
    `P as routed(${s})`,
    segments ? '' : 'fuse (product.eo, product.go) -> g',
    c.chance(segments ? 10 : 80) ? 'fuse (scatter.eo, scatter.go) -> h' : '',
    n % cols === 0 && c.chance(80) ? `require n % ${cols} == 0` : '',
    c.chance(70) ? 'atomic Y' : '',
    `split product.o by ${cols} -> (oo, oi)`,
    split ? `split product.to by ${rows} -> (tx, tr)` : '',
    `reorder (${order.join(', ')}, ${c
      .pick([
        ['p', split ? 'tr' : 'product.to', 'oi'],
        [split ? 'tr' : 'product.to', 'oi', 'p'],
      ])
      .join(', ')})`,
    c.chance(60) ? `bind ${order[0]} to block.x` : '',
    c.chance(30) && split ? 'bind tx to thread.y' : '',
    c.chance(90) ? `cache_write H at ${order.at(-1)} in ${c.pick(['register', 'shared'])} -> Cr` : '',
    `compute_at scatter at ${c.pick([order.at(-1)!, order.at(-1)!, order[0]!])}`,
    c.chance(70) ? `cache_write H at ${order.at(-1)} in register -> Hr` : '',
    c.chance(30) ? `bind ${order[1]} to block.y` : '',
  ]
  return {
    text: `format routed(s) over (e, t) {
  axis eo = dense_fixed(e)
  axis go = dense_variable(eo, t)
  axis to = sparse_fixed(go, t, s) padded with 0
  map (e, t) -> (e, rank(t by e) / s, t)
  inverse (eo, go, to) -> (eo, to)
}
kernel k(tokens: size, experts: size, q: size, n: size) {
  axis e = dense_fixed(experts)
  axis t = sparse_variable(e, tokens)
  axis td = dense_fixed(tokens)
  axis p = dense_fixed(q)
  axis o = dense_fixed(n)
  buffer P: i32[e, t] in
  buffer X: i32[td, p] in
  buffer W: i32[e, p, o] in
  buffer H: i32[e, t, o] local
  buffer Y: i32[td, o] out
  iterate product [e, t, p, o] as SSRS { H[e, t, o] += X[t, p] * W[e, p, o] }
  iterate scatter [e, t, o] as RRS { Y[t, o] ${update} P[e, t] * (H[e, t, o]${rest}) }
}
schedule k.s {
  ${steps.filter((x) => x).join('\n  ')}
}`,
    inputs: {
      tensors: {
        P: coords([e, m], [at.map((x) => x[0]), at.map((x) => x[1])], values(at.length)),
        X: dense([m, p], values(m * p)),
        W: dense([e, p, n], values(e * p * n)),
      },
      params: { tokens: m, experts: e, q: p, n },
    },
  }
}
