/** 64-bit indices: code for sizes whose positions or addresses exceed 32 bits, on targets that have these. */

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { emit, TARGET_NAMES, TARGETS } from '../../src/backends/targets/index.ts'
import { load } from '../../src/node.ts'
import { checkedPlan } from '../../src/plan/launch-plan.ts'
import { checkFits } from '../../src/run/execution/buffer-layout.ts'
import { checkRanges } from '../../src/run/execution/index-ranges.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { compilerOfC } from '../support/c-program.ts'

const GATHER = `kernel gather(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis s = dense_fixed(k)
  buffer r: i32[s] in
  buffer c: i32[s] in
  buffer X: i8[i, j] in
  buffer Y: i32[s] out
  iterate get [s] as S { Y[s] = i32(X[r[s], c[s]]) + i32(s) }
}
schedule gather.blocks { split get.s by 32 -> (b, t) bind b to block.x bind t to thread.x }
schedule gather.peeled { split get.s by 4 -> (b, t) unroll t peel b }
`
const SIZE = 70_000
const SIZES = new Map(Object.entries({ m: SIZE, n: SIZE, k: 6 }))
const ROWS = [0, 30_678, 30_679, 46_341, 69_999, 61_357]
const COLUMNS = [5, 23_647, 23_648, 46_341, 69_999, 1]
const VALUES = [3, -7, 11, 42, 127, -128]
const EXPECTED = VALUES.map((x, s) => x + s)
const addresses = ROWS.map((r, s) => r * SIZE + COLUMNS[s]!)

const SCHEDULES = [undefined, 'blocks', 'peeled']
const planOf = (schedule: string | undefined, target: 'js' | 'c' | 'cuda' | 'wgsl') => {
  const kernel = parseProgram(GATHER).kernel()
  const { compilation } = schedule ? kernel.schedule(schedule) : kernel
  return compilation.planFor(TARGETS[target].lowering)
}

const codeAndText = (f: () => unknown): string => {
  try {
    f()
    return 'accepted'
  } catch (e) {
    if (e instanceof SptError) return `${e.diagnostics[0]!.code}: ${e.diagnostics[0]!.message}`
    throw e
  }
}

describe('a tensor of 4.9 billion elements', () => {
  test.each(SCHEDULES)('is read in JavaScript (%s)', (schedule) => {
    const plan = planOf(schedule, 'js')
    expect(checkRanges(checkedPlan(plan), SIZES, true)).toBe(true)
    const [module] = emit(plan, 'js', { wide: true })
    const { entries } = module!
    const names = entries.map((e) => e.name)
    const functions = new Function(`${module!.text.replace(/^export /gm, '')}\nreturn [${names}]`)()
    const Y = new Int32Array(6)
    const X = Object.fromEntries(addresses.map((a, s) => [a, VALUES[s]]))
    const arrays: Record<string, unknown> = { X, Y, r: Int32Array.from(ROWS), c: Int32Array.from(COLUMNS) }
    for (const [k, e] of entries.entries())
      functions[k](...e.args.map((a) => arrays[a.name] ?? SIZES.get(a.name)))
    expect([...Y]).toEqual(EXPECTED)
  })

  test.skipIf(!compilerOfC || process.platform !== 'linux')('is read in C', () => {
    const folder = mkdtempSync(join(tmpdir(), 'spt-wide-'))
    try {
      const calls = SCHEDULES.map((schedule, k) => {
        const [module] = emit(planOf(schedule, 'c'), 'c', { wide: true })
        return module!.entries.reduce(
          ({ text, call }, entry) => {
            const args = entry.args.map((x) => (x.kind === 'buffer' ? x.name : `${SIZES.get(x.name)}`))
            const name = `of${k}_${entry.name}`
            return {
              text: text.replace(`void ${entry.name}(`, `static void ${name}(`),
              call: `${call}  ${name}(${args});\n`,
            }
          },
          { text: module!.text, call: '' },
        )
      })
      const helpers = new Set(calls.flatMap((c) => c.text.split('\n\n')))
      writeFileSync(
        join(folder, 'all.c'),
        `#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
${[...helpers].join('\n\n')}
int main(void) {
  signed char* X = mmap(0, ${SIZE}ll * ${SIZE}, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (X == MAP_FAILED) return 1;
  int r[] = {${ROWS}}, c[] = {${COLUMNS}}, Y[6];
${addresses.map((a, s) => `  X[${a}ll] = ${VALUES[s]};`).join('\n')}
${calls.map((c) => `${c.call}  for (int s = 0; s < 6; s++) printf("%d ", Y[s]), Y[s] = 99;`).join('\n')}
}
`,
      )
      const flags = [
        '-std=c11',
        '-Wall',
        '-Wno-unknown-pragmas',
        '-fsanitize=undefined',
        '-fno-sanitize-recover=all',
      ]
      const made = spawnSync(compilerOfC!, [...flags, 'all.c', '-o', 'all', '-lm'], {
        cwd: folder,
        encoding: 'utf8',
      })
      expect(made.stderr).toBe('')
      const ran = spawnSync(join(folder, 'all'), { encoding: 'utf8' })
      expect(ran.stderr).toBe('')
      expect(ran.stdout.trim().split(' ').map(Number)).toEqual(SCHEDULES.flatMap(() => EXPECTED))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('is rejected on WebGPU, with its number of elements', () => {
    const device = {
      kind: 'webgpu',
      features: new Set(),
      limits: createCpuDevice().limits,
    } as unknown as Device
    const plan = planOf('blocks', 'wgsl')
    const fits = (m: number): string =>
      codeAndText(() => checkFits({ device, plan: checkedPlan(plan) }, new Map([...SIZES, ['m', m]])))
    expect(fits(SIZE)).toBe('plan/too-large: X has 4900000000 elements')
    expect(fits(10)).toBe('accepted')
  })
})

test('texts have 64-bit indices only where sizes need them', () => {
  for (const target of TARGET_NAMES) {
    const plan = planOf('blocks', target)
    const [narrow] = emit(plan, target)
    expect(narrow!.text).not.toMatch(/long long/)
    if (target === 'c' || target === 'cuda')
      expect(emit(plan, target, { wide: true })[0]!.text).toMatch(/long long/)
  }
  expect(
    checkRanges(checkedPlan(planOf('blocks', 'js')), new Map(Object.entries({ m: 9, n: 9, k: 6 })), true),
  ).toBe(false)
})

// The quotient is a small coordinate, but its dividend may exceed 32 bits.
const QUOTIENT = `kernel quotient(m: size, n: size) {
  axis i = dense_fixed(m)
  axis w = dense_fixed(m)
  buffer W: f32[w] in
  buffer Y: f32[i] out
  buffer Z: f32[i] out
  iterate s [i] as S { Y[i] = W[(i * n + n - 1) / n] Z[i] = W[max(0, m - 1 - (i * n) % (n + i))] }
}`

test('a prepared kernel runs with the width that its sizes need', async () => {
  const compiled = await (await load(QUOTIENT)).kernel().build(createCpuDevice())
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 8 }),
      fc.oneof(fc.integer({ min: 1, max: 9 }), fc.constantFrom(2 ** 30 + 1, 2 ** 31 - 1, 2 ** 31 - 8)),
      async (m, n) => {
        const W = Float32Array.from({ length: m }, (_, k) => k + 1)
        const run = compiled({ W: dense([m], W), n })
        const { Y, Z } = await run
        const at = (i: number): number => Math.floor((i * n + n - 1) / n)
        expect([...Y!.values!]).toEqual(Array.from(W, (_, i) => W[at(i)]))
        expect([...Z!.values!]).toEqual(Array.from(W, (_, i) => W[Math.max(0, m - 1 - ((i * n) % (n + i)))]))
      },
    ),
    { numRuns: 40 },
  )
  compiled.release()
})

test('a kernel that is released while its wide code is compiled is not prepared', async () => {
  const device = createCpuDevice()
  const compiled = await (await load(QUOTIENT)).kernel().sequential().build(device)
  const compile = device.compile.bind(device)
  device.compile = (module) => {
    compiled.release()
    return compile(module)
  }
  const inputs = { tensors: { W: dense([4], new Float32Array(4)) }, params: { n: 2 ** 30 + 1 } }
  await expect(compiled.bind(...flatInputs(inputs))).rejects.toThrow('device/released-module')
})
