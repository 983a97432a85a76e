/** Random small programs as text, with inputs. Legal by construction; everything is i32 or integer-valued f32. */
import fc from 'fast-check'
import type { RefInputs } from '../../src/reference/index.ts'

export interface Sample {
  readonly text: string
  readonly inputs: RefInputs
  /** Axis kinds and statements that occur, for coverage. */
  readonly uses: readonly string[]
}

const ROOTS = ['dense_fixed(m)', 'sparse_variable(m)'] as const
const CHILDREN = [
  'sparse_variable(i, n)',
  'sparse_fixed(i, n, n)',
  'dense_variable(i, n)',
  'dense_fixed(i, n)',
] as const
const GRANDCHILDREN = [
  'dense_fixed(j, p)',
  'sparse_variable(j, p)',
  'sparse_fixed(j, p, p)',
  'dense_variable(j, p)',
  null,
] as const
const REDUCERS = ['+', 'min', 'max', '*'] as const

/** Elements of A, at most 12, distinct coordinates. */
const entries = (shape: readonly number[]): fc.Arbitrary<readonly (readonly number[])[]> =>
  shape.includes(0)
    ? fc.constant([])
    : fc.uniqueArray(fc.tuple(...shape.map((e) => fc.nat(e - 1))), {
        maxLength: 12,
        selector: (c) => c.join(),
      })

/** An integer expression over the names in sight. */
function value(names: readonly string[], reads: readonly string[], type: string): fc.Arbitrary<string> {
  const index = fc.oneof(
    // Any iterator on any dimension, but in an expression: a bare one must have the right range.
    fc
      .tuple(fc.constantFrom(...names), fc.constantFrom('+ 1', '- 1', '/ 2', '% 2', '* 2'))
      .map((t) => t.join(' ')),
    fc.constantFrom(...names).map((v) => `X[${v} - 1]`),
  )
  const read = fc
    .constantFrom(...reads)
    .chain((b) =>
      b.endsWith(']')
        ? fc.constant(b)
        : fc
            .tuple(...Array.from({ length: Number(b.slice(-1)) }, () => index))
            .map((xs) => `${b.slice(0, -1)}[${xs.join(', ')}]`),
    )
  const cast = (e: string): string => (type === 'i32' ? e : `f32(${e})`)
  const leaf = fc.oneof(
    { weight: 4, arbitrary: read },
    { weight: 1, arbitrary: fc.constantFrom(...names).map(cast) },
  )
  const right = fc.oneof(
    { weight: 4, arbitrary: leaf },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 9 }).map((c) => cast(`${c}`)) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 9 }).map((c) => `(-${c})`) },
  )
  const ops = type === 'i32' ? ['+', '-', '*', '/', '%'] : ['+', '-', '*']
  return fc.oneof(
    leaf,
    fc.tuple(leaf, fc.constantFrom(...ops), right).map(([a, o, b]) => `${a} ${o} ${b}`),
    fc.tuple(fc.constantFrom('min', 'max'), leaf, right).map(([f, a, b]) => `${f}(${a}, ${b})`),
    fc
      .tuple(leaf, fc.constantFrom('<', '>=', '==', '!='), right, right, leaf)
      .map(([a, o, b, x, y]) => `select(${a} ${o} ${b}, ${x}, ${y})`),
  )
}

export const samples: fc.Arbitrary<Sample> = fc
  .record({
    root: fc.constantFrom(...ROOTS),
    child: fc.constantFrom(...CHILDREN),
    grandchild: fc.constantFrom(...GRANDCHILDREN),
    type: fc.constantFrom('i32', 'f32'),
    m: fc.nat(4),
    n: fc.nat(4),
    p: fc.nat(3),
    d: fc.nat(3),
    fill: fc.integer({ min: -1, max: 1 }),
  })
  .chain((c) => {
    const depth = c.grandchild ? 3 : 2
    const shape = depth === 3 ? [c.m, c.n, c.p] : [c.m, c.n]
    const chain = depth === 3 ? 'i, j, k' : 'i, j'
    return fc
      .record({
        coords: entries(shape),
        numbers: fc.infiniteStream(fc.integer({ min: -4, max: 9 })),
        open: fc.constantFrom('chain', 'prefix', 'fused', 'attached', 'gathered'),
        dense: fc.boolean(),
        kinds: fc.array(fc.constantFrom('S', 'R'), { minLength: 4, maxLength: 4 }),
        reducer: fc.constantFrom(...REDUCERS),
        structured: fc.boolean(),
        guard: fc.boolean(),
      })
      .chain((r) => {
        const iters =
          r.open === 'chain'
            ? chain.split(', ')
            : r.open === 'prefix'
              ? ['i', 'j']
              : r.open === 'attached'
                ? ['c', 'ja']
                : r.open === 'gathered'
                  ? ['g']
                  : ['i', 'j']
        if (r.dense) iters.push('f')
        const kinds = iters.map((it, k) => (it === 'g' ? 'R' : r.kinds[k]!))
        // One letter covers both members of a fused axis.
        if (r.open === 'fused') kinds[1] = kinds[0]!
        const spatial = iters.filter((_, k) => kinds[k] === 'S')
        const over: Record<string, string> = { i: 'r', j: 'q', k: 'h', f: 'f', c: 'c', ja: 'q' }
        const structured = r.structured && spatial[0] === 'i' && spatial[1] === 'j'
        const axes = structured ? spatial : spatial.map((s) => over[s]!)
        // r stands in for i and for the attached parent alike, so an axis never comes twice.
        const reads = [`A${depth}`, `A[${chain}]`, 'x1', 'X1', ...(r.dense ? ['F2'] : [])].filter(
          (b) => b !== `A[${chain}]` || chain.split(', ').every((v) => iters.includes(v)),
        )
        const header = r.open === 'fused' ? ['ij', ...iters.slice(2)] : iters
        const letters = r.open === 'fused' ? [kinds[0]!, ...kinds.slice(2)] : kinds
        const reduce = kinds.includes('R')
        // A product of floats may leave the exact integers.
        const reducer = c.type === 'f32' && r.reducer === '*' ? '+' : r.reducer
        const typed = c.type === 'i32' ? reads : reads.filter((b) => b !== 'X1')
        return fc.tuple(value(iters, typed, c.type), value(iters, typed, c.type)).map(([e, g]) => {
          const statement = `y[${spatial.join(', ')}] ${reduce ? reducer : ''}= ${e}`
          const text = `kernel k(m: size, n: size, p: size, d: size, l: size) {
  axis i = ${c.root}
  axis j = ${c.child}
  ${c.grandchild ? `axis k = ${c.grandchild}` : ''}
  axis r = dense_fixed(m)
  axis c = dense_fixed(m)
  axis q = dense_fixed(n)
  axis h = dense_fixed(p)
  axis f = dense_fixed(d)
  axis l0 = dense_fixed(l)
  axis g = gathered(q, L)
  axis ij = fused(i, j)
  axis ja = attached(j, c)
  buffer A: ${c.type}[${chain}] in fill ${c.fill}
  buffer x: ${c.type}[q] in fill ${c.fill}
  buffer F: ${c.type}[r, f] in
  buffer X: i32[q] in
  buffer L: i32[l0] in
  buffer y: ${c.type}[${axes.join(', ')}] out fill 5
  buffer z: ${c.type}[${axes.join(', ')}] out fill 7
  iterate first [${header.join(', ')}] as ${letters.join('')} {
    ${r.guard ? `let t = ${g}\n    if (t > 0) { ${statement} }` : statement}
  }
  ${structured ? '' : `iterate second [${axes.join(', ')}] ${axes.length > 0 ? `as ${'S'.repeat(axes.length)}` : ''} { if (y[${axes.join(', ')}] < 4) { z[${axes.join(', ')}] = y[${axes.join(', ')}] + 1 } }`}
}`.replace(structured ? /\n {2}buffer z.*/ : /$^/, '')
          const take = (count: number, low = -4): number[] =>
            Array.from({ length: count }, () => Math.max(low, r.numbers.next().value as number))
          const inputs: RefInputs = {
            params: { m: c.m, n: c.n, p: c.p, d: c.d, l: 3 },
            buffers: {
              A: { coords: shape.map((_, k) => r.coords.map((q) => q[k]!)), values: take(r.coords.length) },
              x: take(c.n),
              F: take(c.m * c.d),
              X: take(c.n),
              L: take(3),
            },
          }
          const uses = [
            c.root,
            c.child,
            c.grandchild ?? 'two levels',
            c.type,
            r.open,
            reduce ? reducer : 'assign',
          ]
          return { text, inputs, uses: [...uses, ...(structured ? ['sparse output'] : [])] }
        })
      })
  })
