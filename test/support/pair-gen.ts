/** Products of rows that pairs of each group gather, s pairs together, and what becomes of them in the rows of a sum. */
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import type { Choices } from './choices.ts'
import type { Scatter } from './scatter-gen.ts'

/** The pairs of a group, about a tile of them: rows repeat or not. */
function pairsOf(c: Choices, m: number, n: number, s: number): readonly [number, number][] {
  const all = Array.from({ length: m * n }, (_, e): [number, number] => [Math.floor(e / n), e % n])
  return c.shuffle(all).slice(0, c.pick([0, 1, s, s - 1, s + 1, 2 * s + 1, all.length]))
}

export function products(c: Choices): Scatter {
  const s = c.pick([2, 3, 4])
  const [groups, m, n] = [c.pick([1, 3]), c.pick([1, 2, 5]), c.pick([1, 3, 4])]
  const [channels, outs] = [c.pick([1, 2, 4, 5, 0]), c.pick([4, 8, 5, 1])]
  const at = Array.from({ length: groups }, (_, g) =>
    pairsOf(c, m, n, s).map(([i, j]): readonly [number, number, number] => [g, i, j]),
  ).flat()
  const sorted = at.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2])
  const values = (count: number): Int32Array => Int32Array.from({ length: count }, () => c.below(7) - 3)
  const condition = (): string =>
    c.pick(['', '', '', '', ' where (i != 1)', ' where (j > 0)', ' where (o < 3)'])
  const [first, second] = c.chance(70) ? ['', ''] : [condition(), condition()]
  const stored = c.chance(85)
  const [rows, cols, deep] = [c.pick([s, s, s, Math.ceil(s / 2), 1, s + 1]), c.pick([4, 2]), c.pick([2, 4])]
  const ways = ['product.go', 'oo']
  const level = stored ? c.pick(['it', 'jt', 'oo']) : 'oo'
  const [ty, tx] = c.shuffle(['thread.x', 'thread.y'])
  const how = (): string => c.pick(['shared', 'shared padded 0', 'register', 'register padded 0'])
  const steps = [
    stored ? `A as tiles(${s})` : '',
    c.chance(90) ? 'atomic Y' : '',
    `split product.o by ${2 * cols} -> (oo, oj)`,
    `split c by ${deep} -> (co, ci)`,
    ...(stored
      ? [
          `tile (product.io, oj) by (${rows}, ${cols}) -> (it, jt, ir, jr)`,
          `reorder (${[...ways, 'it', 'jt', 'co', 'product.jo', ...c.shuffle(['ci', 'ir', 'jr'])].join(', ')})`,
        ]
      : [`reorder (product.g, product.i, product.j, oo, co, ci, oj)`]),
    stored && c.chance(80) ? 'bind product.go to block.x, oo to block.y' : '',
    stored && level !== 'oo' && c.chance(80) ? `bind it to ${ty}, jt to ${tx}` : '',
    c.chance(95) ? `cache_write H at ${level} in register -> Cr` : '',
    `compute_at scatter at ${level}`,
    stored && level === 'jt' && c.chance(40) ? 'accumulate Y over scatter.ir by 2' : '',
    c.chance(80) ? `cache_write H at ${level} in ${c.chance(70) ? 'register' : 'shared'} -> Hr` : '',
    c.chance(70) ? `cache_read X at co in ${how()} -> Xs` : '',
    c.chance(70) ? `cache_read W at co in ${how()} -> Ws` : '',
    stored && c.chance(20) ? 'pipeline co by 2' : '',
  ]
  return {
    text: `format tiles(s) over (g, i, j) {
  axis go = sparse_variable(g) nonunique
  axis io = sparse_fixed(go, i, s) nonunique
  axis jo = sparse_fixed(io, j, 1)${c.chance(90) ? ' compact' : ''}
  map (g, i, j) -> (g, i, j)
  inverse (go, io, jo) -> (go, io, jo)
}
kernel k(groups: size, m: size, n: size, p: size, q: size) {
  axis g = dense_fixed(groups)
  axis i = sparse_variable(g, m)
  axis j = sparse_variable(i, n)
  axis x = dense_fixed(n)
  axis y = dense_fixed(m)
  axis c = dense_fixed(p)
  axis o = dense_fixed(q)
  buffer A: i32[g, i, j] in
  buffer X: i32[x, c] in
  buffer W: i32[g, c, o] in
  buffer H: i32[g, i, j, o] local
  buffer Y: i32[y, o] out
  iterate product [g, i, j, c, o] as SSSRS${first} { H[g, i, j, o] += X[j, c] * W[g, c, o] }
  iterate scatter [g, i, j, o] as RRRS${second} { Y[i, o] += A[g, i, j] * H[g, i, j, o] }
}
schedule k.s {
  ${steps.filter((x) => x).join('\n  ')}
}`,
    inputs: {
      tensors: {
        A: coords(
          [groups, m, n],
          [0, 1, 2].map((d) => sorted.map((p) => p[d]!)),
          values(sorted.length),
        ),
        X: dense([n, channels], values(n * channels)),
        W: dense([groups, channels, outs], values(groups * channels * outs)),
      },
      params: { groups, m, n, p: channels, q: outs },
    },
  }
}
