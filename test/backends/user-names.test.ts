/** Names are the user's: what every object has, words of the targets, and what texts call things of their own. */

import { afterAll, describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords } from '../../src/api/inputs/tensors.ts'
import { loadPlan } from '../../src/api/plans/loaded-plan.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { devices } from '../../src/node.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'
import { wgslErrors } from '../support/wgsl-valid.ts'

const NAMES = [
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__', 'prototype'],
  ...[
    'arguments',
    'await',
    'eval',
    'NaN',
    'Infinity',
    'undefined',
    'Math',
    'Float32Array',
    'globalThis',
    'yield',
  ],
  ...[
    'fn',
    'var',
    'f32',
    'vec4',
    'select',
    'array',
    'bitcast',
    'abs',
    'local',
    'workgroup',
    'ptr',
    'main',
    'enable',
  ],
  ...[
    'int',
    'float',
    'asm',
    'auto',
    'signed',
    'unix',
    'threadIdx',
    'INFINITY',
    'NULL',
    '__shared__',
    'double',
    'I',
  ],
  ...[
    'thread',
    'f32_view',
    'params',
    'group',
    'old_word',
    'exp_f32',
    'to_i32',
    'Params',
    'cell',
    'element',
    'lanes',
  ],
  ...[
    'block_x',
    'thread_x',
    'shared_memory',
    'sign_of',
    'i_1',
    'v__proto__',
    '_',
    '__',
    '_x',
    'indptr',
    'values',
  ],
]
const ROLES = 18

/** Every role has another name each time. */
const rotations = Array.from({ length: Math.ceil(NAMES.length / 6) }, (_, k) =>
  Array.from({ length: ROLES }, (_, r) => NAMES[(6 * k + 11 * r) % NAMES.length]!),
)

const program = (n: readonly string[], reducer: string): string => `
monoid ${n[10]}(${n[11]}: i32) { identity 0 combine (${n[12]}, ${n[13]}) = ${n[12]}.${n[11]} + ${n[13]}.${n[11]} }
kernel ${n[0]}(${n[1]}: size, ${n[2]}: f32) {
  axis ${n[3]} = dense_fixed(${n[1]})
  axis ${n[4]} = sparse_variable(${n[3]}, ${n[1]})
  buffer ${n[5]}: f32[${n[3]}, ${n[4]}] in
  buffer ${n[6]}: f32[${n[3]}] out
  buffer ${n[14]}: i32[${n[3]}] out
  iterate ${n[7]} [${n[3]}, ${n[4]}] as SR where (${n[3]} != ${n[4]}) {
    let ${n[8]} = max(${n[5]}[${n[3]}, ${n[4]}], 0.5) * ${n[2]}
    ${n[6]}[${n[3]}] += ${n[8]} + exp(${n[8]} * 0.0)
    ${n[14]}[${n[3]}] ${reducer}= 1
  }
}
schedule ${n[0]}.${n[15]} {
  split ${n[3]} by 2 -> (${n[16]}, ${n[17]})
  bind ${n[16]} to block.x, ${n[17]} to thread.x
}
schedule ${n[0]}.${n[9]} {
  fuse (${n[3]}, ${n[4]}) -> ${n[16]}
  atomic ${n[14]}
  atomic ${n[6]}
  split ${n[16]} by 2 -> (${n[17]}, ${n[15]})
  bind ${n[17]} to block.x, ${n[15]} to thread.x
}
`
const A = coords(
  [3, 3],
  [
    [0, 0, 1, 2],
    [1, 2, 1, 0],
  ],
  Float32Array.of(1, 2, 3, 4),
)

/** Without a schedule, over threads, and with atomics. */
function kernels(n: readonly string[]) {
  const declared = parseProgram(program(n, n[10]!)).kernel()
  return [declared, declared.schedule(n[15]!), parseProgram(program(n, '+')).kernel().schedule(n[9]!)]
}

async function agrees(n: readonly string[], device: Awaited<ReturnType<typeof devices.cpu>>): Promise<void> {
  for (const kernel of kernels(n)) {
    const compiled = await kernel.build(device)
    const inputs = { tensors: Object.fromEntries([[n[5], A]]), params: Object.fromEntries([[n[2], 2]]) }
    const prepared = await compiled.bind(...flatInputs(inputs))
    await prepared.run()
    const out = new Map(Object.entries(await prepared.outputs()))
    expect([...out.get(n[6]!)!.values!, ...out.get(n[14]!)!.values!], n.join(' ')).toEqual([8, 0, 9, 2, 0, 1])
    expect((await prepared.verify()).problems).toEqual([])
    const loaded = await loadPlan(JSON.parse(JSON.stringify(compiled.plan)), device)
    const again = await loaded(...flatInputs(inputs))
    expect([...again[n[6]!]!.values!, ...again[n[14]!]!.values!], n.join(' ')).toEqual([8, 0, 9, 2, 0, 1])
    loaded.release()
    prepared.free()
    compiled.release()
  }
}

describe('a kernel with reserved names everywhere', async () => {
  const open = [await devices.cpu(), await devices.webgpu()] as const
  afterAll(async () => {
    for (const d of open) await d.dispose()
  })
  test('on cpu, and from its trace', async () => {
    for (const n of rotations) {
      await agrees(n, open[0])
      for (const kernel of kernels(n)) {
        const again = parseProgram(
          program(n, kernel.schedules.length > 0 && kernel.show(1).includes(`${n[10]}=`) ? n[10]! : '+'),
        )
        expect(
          again
            .kernel()
            .replay(JSON.parse(JSON.stringify(kernel)))
            .show(3),
        ).toBe(kernel.show(3))
      }
    }
  })
  test('on webgpu', async () => {
    for (const n of rotations)
      for (const kernel of kernels(n))
        for (const { text } of kernel.parallel().emit('wgsl'))
          expect(await wgslErrors(text), n.join(' ')).toEqual([])
    await agrees(rotations[0]!, open[1])
  })
  test.skipIf(noNvcc !== null)('as CUDA', () => {
    const texts = rotations.slice(0, 1).flatMap((n) =>
      kernels(n)
        .slice(1)
        .map((k) => k.emit('cuda')[0]!.text),
    )
    expect(compileCuda(texts)).toBe('')
  })
})

test('comparisons among operands are not parsed as template arguments in WGSL', async () => {
  const k = parseProgram(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis c = dense_fixed(n)
    buffer A: i32[i, j] in
    buffer Y: i32[c] in
    buffer R: bool[i, j] out
    iterate a [i, j] as SS { R[i, j] = select(Y[j] != m, m > n, i < j) or select(i < j, m >= i, Y[j] < m) }
  }`).kernel()
  for (const { text } of k.parallel().emit('wgsl')) expect(await wgslErrors(text)).toEqual([])
})
