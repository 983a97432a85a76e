/** Source spans have no meaning: a kernel without them is compiled to the same texts, for every target. */
import { readdirSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { resultOrError, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { emit, TARGETS } from '../../src/backends/targets/index.ts'
import type { Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import { load } from '../../src/node.ts'
import { Compilation } from '../../src/run/compile/compile.ts'
import { sample } from '../support/cases.ts'
import { Choices } from '../support/choices.ts'
import { generate } from '../support/program-gen.ts'
import { readSample } from '../support/read-sample.ts'
import { signed } from '../support/wrapping-gen.ts'
import { numbers, parameters } from './property-cases.ts'

/** A copy without spans; shared parts remain shared. */
function withoutSpans<T>(data: T, copies = new Map<unknown, unknown>()): T {
  if (typeof data !== 'object' || data === null) return data
  const known = copies.get(data)
  if (known) return known as T
  const copy = (x: unknown): unknown => withoutSpans(x, copies)
  const out: unknown =
    data instanceof Map
      ? new Map([...data].map(([k, v]) => [k, copy(v)]))
      : Array.isArray(data)
        ? data.map(copy)
        : Object.fromEntries(Object.entries(data).flatMap(([k, v]) => (k === 'span' ? [] : [[k, copy(v)]])))
  copies.set(data, out)
  return out as T
}

const textsOf = (kernel: Kernel1): readonly unknown[] =>
  (['js', 'c', 'cuda', 'wgsl'] as const).map((target) => {
    const made = resultOrError(() =>
      emit(Compilation.of(kernel).planFor(TARGETS[target].lowering), target).map((m) => m.text),
    )
    return made instanceof SptError ? made.diagnostics[0]!.code : made
  })

const expectSame = (kernel: Kernel1): void => expect(textsOf(withoutSpans(kernel))).toEqual(textsOf(kernel))

test('generated kernels', () => {
  fc.assert(
    fc.property(numbers, (choices) => {
      const made = resultOrError(() => readSample(generate(new Choices(choices))).program.kernel())
      if (!(made instanceof SptError)) expectSame(made.compilation.source)
    }),
    parameters(12),
  )
})

test('values that wrap', () => {
  fc.assert(
    fc.property(numbers, (choices) => {
      const c = new Choices(choices)
      const text = `kernel k(m: size) {
  axis i = dense_fixed(m)
  buffer u: u32[i] in
  buffer b: i32[i] in
  buffer c: i8[i] in
  buffer C: i32[i] out
  iterate s [i] as S where (${signed(c, 2)} < ${signed(c, 2)}) { C[i] = ${signed(c, 3)} }
}`
      const made = resultOrError(() => parseProgram(text).kernel())
      if (!(made instanceof SptError)) expectSame(made.compilation.source)
    }),
    parameters(40),
  )
})

test('packaged kernels', async () => {
  const folder = new URL('../../kernels/', import.meta.url)
  for (const file of sample(
    readdirSync(folder).filter((f) => f.endsWith('.spt')),
    3,
  )) {
    const program = await load(new URL(file, folder))
    for (const name of program.kernels) expectSame(program.kernel(name).compilation.source)
  }
})
