/** Two nests and schedules that join them: parts of a tensor that combine into the same rows, and nests that meet in other ways. */
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import type { Inputs } from '../../src/run/bind/index.ts'
import type { Choices } from './choices.ts'
import { standard } from './packaged-formats.ts'

export interface Joined {
  readonly text: string
  /** Those that are refused are left out, one by one. */
  readonly steps: readonly string[]
  readonly inputs: Inputs
}

const values = (c: Choices, count: number): Int32Array =>
  Int32Array.from({ length: count }, () => c.below(7) - 3)

/** Loops of a nest: those that become common, others in an order that all have, mostly, and what is put anywhere among them. */
function ordered(
  c: Choices,
  common: readonly string[],
  same: readonly string[],
  free: readonly string[],
  after?: string,
): string {
  const inner = c.chance(92) ? [...same] : c.shuffle(same)
  for (const l of free) {
    const least = after === undefined ? 0 : inner.indexOf(after) + 1
    inner.splice(least + c.below(inner.length - least + 1), 0, l)
  }
  return `reorder (${[...common, ...inner].join(', ')})`
}

/** Parts of a tensor in rows of their own formats, all into one result. */
export function joinedParts(c: Choices): Joined {
  const [b, w] = [c.pick([2, 4, 1]), c.pick([2, 4])]
  const blocks = c.pick([0, 0, 1, 2])
  const labels = c.pick([
    ['x', 'y'],
    ['x', 'y'],
    ['x', 'y', 'z'],
  ])
  const isBlocked = (k: number): boolean => k < blocks
  // Of a part, and of those after it.
  const [some, rest] =
    blocks > 0
      ? [`density(${b}) >= 0.5`, `density(${b}) < 0.5`]
      : c.pick([
          ['count(j by i) > 2', 'count(j by i) <= 2'],
          ['j <= i', 'j > i'],
        ] as const)
  const conditions = [some, `${rest} and ${c.pick(['count(j by i) <= 1', 'i != 1'])}`]
  const part = (l: string, k: number): string => {
    const where = k < labels.length - 1 ? ` where (${conditions[k]})` : ''
    return `part ${l} = ${isBlocked(k) ? `bsr(${b})` : 'csr'}${where}`
  }
  const op = blocks > 0 ? '+' : c.pick(['+', '+', 'max', 'min'])
  const [m, n, d] = [c.pick([1, 4, 5, 9, 0]), c.pick([1, 4, 6]), c.pick([1, 4, 5, 8])]
  const at: [number, number][] = []
  const full = c.pick([20, 50, 90])
  for (let i = 0; i < m; i++) for (let j = 0; j < n; j++) if (c.chance(full)) at.push([i, j])
  const columns = c.chance(90)
  const parallel = c.pick(['', '', 'before', 'after', 'after'])
  const threads = c.pick(['', '', 'ii', 'f'])
  const rowsFirst = c.chance(70)
  const steps: string[] = ['A as mix', c.chance(10) ? 'atomic C' : '']
  for (const [k, l] of labels.entries()) {
    const [nest, row] = [`sum_${l}`, `io_${l}`]
    const tile = isBlocked(k) ? '' : c.chance(95) ? `${b}` : '3'
    if (tile) steps.push(`split ${row} by ${tile} -> (o_${l}, ii_${l})`)
    const outer = isBlocked(k) ? row : `o_${l}`
    if (columns) steps.push(`split ${nest}.f by ${c.chance(95) ? w : 3} -> (fo, fi)`)
    const inner = columns ? `${nest}.fi` : `${nest}.f`
    steps.push(
      ordered(
        c,
        columns ? [outer, `${nest}.fo`] : [outer],
        rowsFirst ? [`ii_${l}`, inner] : [inner, `ii_${l}`],
        isBlocked(k) ? [`jo_${l}`, `ji_${l}`] : [`jo_${l}`],
        isBlocked(k) ? undefined : `ii_${l}`,
      ),
    )
    if (parallel === 'before') steps.push(`bind ${outer} to block.x`)
    const bound = c.chance(90) ? threads : c.pick(['ii', 'f'])
    if (bound !== '') steps.push(`bind ${bound === 'ii' ? `ii_${l}` : inner} to thread.x`)
  }
  const first = isBlocked(0) ? 'io_x' : 'o_x'
  const last = columns && c.chance(80) ? 'sum_x.fo' : first
  steps.push(`join (${c.shuffle(labels.map((l) => `sum_${l}`)).join(', ')}) at ${last}`)
  if (parallel === 'after') steps.push(`bind ${first} to block.x`)
  const where = last === first ? first : 'sum.fo'
  if (c.chance(80)) steps.push(`cache_write C at ${where} in ${c.pick(['register', 'register', 'shared'])}`)
  if (parallel === '' && c.chance(30)) steps.push(`bind ${first} to thread.y`)
  return {
    text: `${standard('csr', 'bsr')}
format mix over (i, j) {
  ${labels.map(part).join('\n  ')}
}
kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: i32[i, j] in
  buffer B: i32[jd, f] in
  buffer C: i32[i, f] ${c.pick(['out', 'out', 'inout'])}
  iterate sum [i, j, f] as SRS { C[i, f] ${op}= A[i, j] * B[j, f] }
}`,
    steps: steps.filter((s) => s),
    inputs: {
      tensors: {
        A: coords([m, n], [at.map((x) => x[0]), at.map((x) => x[1])], values(c, at.length)),
        B: dense([n, d], values(c, n * d)),
        C: dense([m, d], values(c, m * d)),
      },
      params: { m, n, d },
    },
  }
}

/** What the first nest does with T, and the second with it, C, y or V: some of it may not be joined. */
const FIRST = [
  'iterate a [r, p, j] as SRS { T[r, j] += X[r, p] * W[p, j] + V[r, j] }',
  'iterate a [r, j] as SS { T[r, j] = V[r, j] * 2 + L[r] }',
  'iterate a [r, p, j] as SRS { T[r, j] max= X[r, p] * W[p, j] }',
  'iterate a [r, j, p] as SSR { if (V[r, j] > 0) { T[r, j] += X[r, p] } }',
  'iterate a [r, j, p] as RSR { y[j] += X[r, p] * V[r, j] }',
]
const SECOND = [
  'iterate b [r, p, j] as SRS { T[r, j] += X[r, p] + W[p, j] }',
  'iterate b [r, p, j] as SRS { T[r, j] += X[r, p] + W[p, j] }',
  'iterate b [r, j, p] as SSR where (p != L[r]) { T[r, j] += X[r, p] + W[p, j] }',
  'iterate b [r, j, p] as SSR { if (V[r, j] > 0) { T[r, j] += X[r, p] } }',
  'iterate b [r, j] as SS { T[r, j] max= V[r, j] }',
  'iterate b [r, j] as SS { T[r, j] = V[r, j] }',
  'iterate b [r, j] as SS { C[r, j] = T[r, j] - 1 }',
  'iterate b [r, j, p] as SSR { C[r, j] += T[r, j] * X[r, p] }',
  'iterate b [r, j, p] as SSR { C[r, j] += T[m - 1 - r, j] * X[r, p] }',
  'iterate b [r, j] as SS { C[r, j] = T[r, n - 1 - j] }',
  'iterate b [r, j] as SS { C[r, j] = T[0, j] }',
  'iterate b [r, j] as RS { y[j] += T[r, j] }',
  'iterate b [r, j] as RS { y[j] += V[r, j] }',
  'iterate b [r, j] as RS { y[j] max= V[r, j] }',
  'iterate b [r, j] as RS { T[L[r], j] += V[r, j] }',
  'iterate b [r, j] as RS { T[L[r], j] max= V[r, j] }',
  'iterate b [r, j] as SS { V[r, j] = X[r, 0] }',
  'iterate b [r, j] as SS { V[m - 1 - r, j] = X[r, 0] }',
]

/** Nests over rows, and what is between them to get wrong. */
export function joinedNests(c: Choices): Joined {
  const first = c.pick(FIRST)
  const rowsOf = (s: string): boolean => / as R/.test(s)
  const second = c.pick(c.chance(85) ? SECOND.filter((s) => rowsOf(s) === rowsOf(first)) : SECOND)
  const [m, p, n] = [c.pick([1, 4, 5, 8]), c.pick([1, 3, 4]), c.pick([1, 4, 5])]
  const [by, w] = [c.pick([2, 4, 1]), c.pick([2, 4])]
  const rows = c.chance(85)
  const columns = c.chance(85)
  const parallel = c.pick(['', 'before', 'after'])
  const threads = c.chance(40)
  const uses = (name: string): boolean => new RegExp(`\\b${name}\\[`).test(`${first} ${second}`)
  const how = [c.pick(['', '', 'atomic', 'atomic', 'combine']), c.pick(['', '', '', 'atomic'])]
  const steps = ['y', 'T'].flatMap((b, k) => (how[k] && uses(b) ? [`${how[k]} ${b}`] : []))
  const names = [first, second].map((s, k) => {
    const [nest, has] = [k === 0 ? 'a' : 'b', s.includes(', p')]
    if (rows) steps.push(`split ${nest}.r by ${c.chance(95) ? by : 3} -> (ro, ri)`)
    if (columns) steps.push(`split ${nest}.j by ${c.chance(95) ? w : 3} -> (jo, ji)`)
    const outer = [`${nest}.${rows ? 'ro' : 'r'}`, ...(columns ? [`${nest}.jo`] : [])]
    const inner = [
      ...(rows ? [`${nest}.ri`] : []),
      ...(has && /iterate . \[[^\]]*p/.test(s) ? [`${nest}.p`] : []),
      `${nest}.${columns ? 'ji' : 'j'}`,
    ]
    const same = inner.filter((l) => !l.endsWith('.p'))
    steps.push(
      ordered(
        c,
        outer,
        same,
        inner.filter((l) => l.endsWith('.p')),
      ),
    )
    if (parallel === 'before') steps.push(`bind ${outer[0]} to block.x`)
    if (threads && c.chance(80)) steps.push(`bind ${c.pick(inner)} to thread.x`)
    return { outer, inner }
  })
  const { outer: outside } = names[0]!
  const at = c.chance(75) ? outside.at(-1)! : c.pick(outside)
  steps.push(`join (a, b) at ${c.chance(50) ? at : at.replace('a.', 'b.')}`)
  const common = names[0]!.outer.map((l) => l.replace('a.', 'joined.'))
  if (parallel === 'after') steps.push(`bind ${common[0]} to ${c.pick(['block.x', 'block.x', 'thread.y'])}`)
  const inside = c.pick([at.replace('a.', 'joined.'), at.replace('a.', 'joined.'), common[0]!])
  for (const buffer of c.shuffle(['T', 'C', 'y']))
    if (c.chance(50) && `${first}${second}`.includes(`${buffer}[`))
      steps.push(`cache_write ${buffer} at ${inside} in ${c.pick(['register', 'register', 'shared'])}`)
  if (c.chance(20)) steps.push(`unroll ${c.pick([at.replace('a.', 'joined.'), ...names[1]!.inner])} by 2`)
  if (c.chance(20)) steps.push(`fission ${at.replace('a.', 'joined.')} after 1`)
  const writes = (name: string, text: string): boolean =>
    new RegExp(`\\b${name}\\[[^=]*\\] \\S*= `).test(text)
  const other = ['C', 'y', 'V'].some((b) => writes(b, `${first} ${second}`))
  const roles = writes('T', first)
    ? c.pick([['out', 'inout'], other ? ['local'] : ['out']])
    : writes('T', second)
      ? ['inout']
      : ['in']
  const buffers = [
    ['L', 'r', 'in'],
    ['X', 'r, p', 'in'],
    ['W', 'p, j', 'in'],
    ['V', 'r, j', writes('V', second) ? 'inout' : 'in'],
    ['T', 'r, j', c.pick(roles)],
    ['C', 'r, j', 'out'],
    ['y', 'j', 'out'],
  ].flatMap(([name, axes, role]) => (uses(name!) ? [`buffer ${name}: i32[${axes}] ${role}`] : []))
  return {
    text: `kernel k(m: size, q: size, n: size) {
  axis r = dense_fixed(m)
  axis p = dense_fixed(q)
  axis j = dense_fixed(n)
  ${buffers.join('\n  ')}
  ${first}
  ${second}
}`,
    steps: steps.filter((s) => s),
    inputs: {
      tensors: Object.fromEntries(
        Object.entries({
          L: dense(
            [m],
            Int32Array.from({ length: m }, () => c.below(m)),
          ),
          X: dense([m, p], values(c, m * p)),
          W: dense([p, n], values(c, p * n)),
          V: dense([m, n], values(c, m * n)),
          T: dense([m, n], values(c, m * n)),
        }).filter(([name]) => uses(name)),
      ),
      params: { m, q: p, n },
    },
  }
}
