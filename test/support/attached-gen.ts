/**
 * Random kernels whose tensors are entered by coordinates: products of sparse matrices, triangles, chains of hops, rows that a
 * list names, over axes that two tensors share and over their own.
 */
import type { RefTensor } from '../../src/reference/index.ts'
import type { Tensor } from '../../src/storage/tensor.ts'
import type { Choices } from './choices.ts'
import { entries, size, values } from './matrix-gen.ts'
import type { Sample } from './program-gen.ts'
import { FORMATS } from './program-parts.ts'

export function attachedAxes(c: Choices): Sample {
  const dtype = c.pick(['i32', 'f32'] as const)
  // Mostly square: what one tensor's rows are, another's columns may be.
  const params: Record<string, number> = { m: size(c), n: size(c), o: size(c) }
  const tensors: Record<string, Tensor> = {}
  const buffers: Record<string, RefTensor> = {}
  const structure: Record<string, { coords: readonly (readonly number[])[] }> = {}
  const axes = ['axis i = dense_fixed(m)']
  const declared: string[] = []
  const body: string[] = []
  const encoded = (numbers: readonly number[]) =>
    dtype === 'i32' ? Int32Array.from(numbers) : Float32Array.from(numbers)
  const dense = (name: string, over: readonly string[], shape: readonly number[]): void => {
    const numbers = values(
      c,
      dtype,
      shape.reduce((a, b) => a * b, 1),
      false,
    )
    tensors[name] = { kind: 'dense', shape, values: encoded(numbers), dtype }
    buffers[name] = numbers
    declared.push(`buffer ${name}: ${dtype}[${over.join(', ')}] in`)
  }
  const numbersOf = new Map<string, ReturnType<typeof entries>>()
  /** A sparse matrix with `rows` rows; `row` is its root. */
  const sparse = (name: string, row: string, column: string, rows: string, columns: string): void => {
    const kind = c.pick(['sparse_variable', 'sparse_variable', 'sparse_variable'] as const)
    axes.push(`axis ${column} = ${kind}(${row}, ${columns})`)
    const e = entries(c, [params[rows]!, params[columns]!], false)
    numbersOf.set(column, e)
    structure[column] = { coords: e.coords }
    matrix(name, row, column, rows, columns)
  }
  const matrix = (name: string, row: string, column: string, rows: string, columns: string): void => {
    const e = numbersOf.get(column)!
    const numbers = values(c, dtype, e.count, false)
    const coords = e.coords.map((x) => Int32Array.from(x))
    tensors[name] = {
      kind: 'coords',
      shape: [params[rows]!, params[columns]!],
      coords,
      values: encoded(numbers),
      dtype,
    }
    buffers[name] = { coords: e.coords, values: numbers }
    declared.push(`buffer ${name}: ${dtype}[${row}, ${column}] in`)
  }

  const how = c.pick(['product', 'product', 'itself', 'rows', 'chain', 'listed', 'above'] as const)
  // Rows and columns of a tensor that enters itself are the same, and those of one that is asked at others' columns.
  const width = how === 'itself' ? 'm' : 'n'
  sparse('A', 'i', 'j', 'm', width)
  const stored = ['A']
  const iters: { text: string; name: string; kind: 'S' | 'R' }[] = []
  const over = (name: string, kind: 'S' | 'R', axis = name): void => {
    iters.push({ text: axis === name ? name : `${name} in ${axis}`, name, kind })
  }
  let factors = ['A[i, j]']
  let columns = 'n'
  if (how === 'itself') {
    axes.push('axis at = attached(j, j)')
    over('i', 'S')
    over('j', 'R')
    over('k', 'R', 'at')
    factors.push('A[j, k]', ...(c.chance(60) ? ['A[i, k]'] : []))
    columns = 'm'
  } else if (how === 'listed') {
    const count = size(c)
    params.s = count
    const numbers = Array.from({ length: count }, () => c.below(Math.max(1, params.m!)))
    if (params.m === 0) params.s = 0
    const list = params.s === 0 ? [] : numbers
    tensors.L = { kind: 'dense', shape: [list.length], values: Int32Array.from(list), dtype: 'i32' }
    buffers.L = list
    axes.push('axis l = dense_fixed(s)', 'axis from = gathered(i, L)', 'axis at = attached(j, from)')
    declared.push('buffer L: i32[l] in')
    over('v', 'R', 'from')
    over('k', 'R', 'at')
    factors = ['A[v, k]']
  } else {
    axes.push(`axis u = dense_fixed(${how === 'rows' ? 'm' : 'n'})`)
    columns = how === 'above' ? 'n' : 'o'
    sparse('B', 'u', 'v', how === 'rows' ? 'm' : 'n', columns)
    stored.push('B')
    axes.push(`axis at = attached(v, ${how === 'rows' ? 'i' : 'j'})`)
    over('i', 'S')
    over('j', 'R')
    const by = how === 'rows' ? 'i' : 'j'
    const place = how === 'rows' && c.chance(50) ? 1 : iters.length
    iters.splice(place, 0, { text: 'k in at', name: 'k', kind: 'R' })
    factors.push(`B[${by}, k]`)
    if (how === 'chain') {
      axes.push('axis x = dense_fixed(o)')
      sparse('D', 'x', 'y', 'o', 'm')
      stored.push('D')
      axes.push('axis next = attached(y, at)')
      over('l', 'R', 'next')
      factors.push('D[k, l]')
    } else if (how === 'above') {
      // Another tensor over the axes of the first, looked up.
      matrix('M', 'i', 'j', 'm', 'n')
      factors.push('M[i, k]')
    }
  }
  // What the innermost coordinate is a place of, and a dense operand with it.
  const last = iters.at(-1)!
  const isColumn = last.name === 'k'
  if (isColumn && c.chance(40)) {
    axes.push(`axis w = dense_fixed(${columns})`)
    dense('W', ['w'], [params[columns]!])
    factors.push('W[k]')
  }
  if (c.chance(30)) {
    axes.push('axis f = dense_fixed(2)')
    over('f', 'S')
    dense('F', ['f'], [2])
    factors.push('F[f]')
  }
  const place: string[] = []
  const results: string[] = []
  if (iters.some((x) => x.name === 'i' && x.kind === 'S')) {
    place.push('i')
    results.push('i')
  }
  if (isColumn && c.chance(50)) {
    axes.push(`axis z = dense_fixed(${columns})`)
    place.push('k')
    results.push('z')
    if (how !== 'listed' && how !== 'rows') last.kind = 'S'
    // Rows in which a column may be again are combined.
    if (iters.some((x) => x.name === 'j' || x.name === 'v') && c.chance(50)) last.kind = 'R'
  }
  if (iters.at(-1)!.name === 'f') {
    place.push('f')
    results.push('f')
  }
  declared.push(`buffer C: ${dtype}[${results.join(', ')}] out`)
  const op = c.chance(85) ? '+=' : 'max='
  // What fill values are not the identity of.
  const terms = factors.map((f) => (c.chance(12) ? `(${f} + 1)` : f))
  const statement = `C[${place.join(', ')}] ${op} ${terms.join(c.chance(90) ? ' * ' : ' + ')}`
  const iterate = (name: string, some: typeof iters, inside: string): string =>
    `iterate ${name} [${some.map((x) => x.text).join(', ')}] as ${some.map((x) => x.kind).join('')} { ${inside} }`
  const at = c.chance(30) ? 1 + c.below(iters.length - 1) : 0
  body.push(
    at === 0
      ? iterate('sum', iters, statement)
      : iterate('outer', iters.slice(0, at), iterate('inner', iters.slice(at), statement)),
  )
  if (c.chance(25)) {
    declared.push(`buffer E: ${dtype}[i] out`)
    body.push('iterate other [i, j] as SR { E[i] += A[i, j] }')
  }
  const names = new Set(Object.keys(params))
  return {
    text: `${FORMATS}\nkernel k(${[...names].map((p) => `${p}: size`).join(', ')}) {\n  ${[...axes, ...declared, ...body].join('\n  ')}\n}\n`,
    params,
    tensors,
    reference: { params, buffers, structure },
    uses: new Set(['attached', how, dtype]),
    stored,
  }
}
