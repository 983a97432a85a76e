/** Tiles that are objects of a target: filled, and otherwise seen by instructions alone. */
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { instructionTest } from '../../src/instruction-tests/instruction-test.ts'
import { interpret } from '../../src/interpret/stage2.ts'
import { devices, type Kernel, load } from '../../src/node.ts'
import { capabilities } from '../../src/runtime/webgpu/limits.ts'
import { wgslErrors } from '../support/wgsl-valid.ts'

const OBJECTS = `
memory tile: f32[8, 8] in register of 32 threads {
  wgsl needs chromium_matrices \`matrix<f32, 8, 8>\`
  fill wgsl \`matrix<f32, 8, 8>($value)\`
}
memory unfilled: f32[8, 8] in register of 32 threads {
  wgsl \`matrix<f32, 8, 8>\`
}
instr bring(T: f32[8, 8] in tile, S: f32[8, 8] in global) by 32 threads {
  iterate copy [i, j] as SS { T[i, j] = S[i, j] }
  wgsl \`$T = bring(&$S, $S.index(0, 0));\`
}
instr fetch(D: f32[8, 8] in global, T: f32[8, 8] in tile) by 32 threads {
  iterate copy [i, j] as SS { D[i, j] = T[i, j] }
  wgsl \`fetch(&$D, $D.index(0, 0), $T);\`
}
instr more(T: f32[8, 8] in tile, S: f32[8, 8] in tile) by 32 threads {
  iterate more [i, j] as SS { T[i, j] += S[i, j] }
  wgsl needs lanes(8) \`$T = $T + $S;\`
}
kernel sums(m: size, n: size, r: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis k = dense_fixed(r)
  buffer X: f32[k, i, j] in
  buffer Y: f32[i, j] out
  iterate sum [i, j, k] as SSR { Y[i, j] += X[k, i, j] }
}
`
const TILED = `
  require m % 16 == 0
  require n % 8 == 0
  tile (i, j) by (16, 8) -> (io, jo, ii, jr)
  split ii by 8 -> (it, ir)
  reorder (io, jo, k, it, ir, jr)
  bind io to block.y, jo to block.x`
const scheduled = (steps: string): Kernel =>
  parseProgram(`${OBJECTS}\nschedule sums.tested {${TILED}\n${steps}\n}`).kernel().schedule('tested')
const CARRIED = `
  cache_write Y at jo in tile -> Yr
  cache_read X at k in tile -> Xr
  tensorize Xr.ir with bring
  tensorize Yr.ir with fetch`

describe('objects', () => {
  test('are declared by their type, filled and handed to instructions', () => {
    const [module] = scheduled(`${CARRIED}\n  tensorize sum.ir with more`).emit('wgsl')
    const { text } = module!
    expect(text).toContain('enable chromium_matrices;')
    expect(text).not.toContain('enable lanes')
    expect(module!.capabilities!.map((c) => c.name).toSorted()).toEqual(['chromium_matrices', 'lanes(8)'])
    expect(text).toContain('var Yr_0: matrix<f32, 8, 8>;')
    expect(text).toContain('Yr_1 = matrix<f32, 8, 8>(0.0f);')
    expect(text).toMatch(/bring\(&X, /)
    expect(text).toContain('Yr_1 = Yr_1 + Xr_1;')
    expect(text).toMatch(/fetch\(&Y, .*, Yr_1\);/)
  })

  test('have the meaning of their loops', () => {
    const X = Array.from({ length: 3 * 16 * 8 }, (_, k) => k % 13)
    const Y = new Array<number>(16 * 8).fill(Number.NaN)
    const memory = new Map([
      ['X', X],
      ['Y', Y],
    ])
    const sizes = new Map([
      ['m', 16],
      ['n', 8],
      ['r', 3],
    ])
    interpret(scheduled(`${CARRIED}\n  tensorize sum.ir with more`).compilation.loops, memory, sizes)
    expect(Y).toEqual(Array.from({ length: 128 }, (_, e) => X[e]! + X[e + 128]! + X[e + 256]!))
  })

  test.each([
    ['sums by a loop', CARRIED, /seen by instructions alone/],
    ['a copy by a loop', CARRIED.replace('  tensorize Xr.ir with bring\n', ''), /seen by instructions alone/],
    [
      'one that nothing fills',
      CARRIED.replace('Y at jo in tile', 'Y at jo in unfilled').replace(/ {2}tensorize Yr.*/, ''),
      /unfilled does not say how a tile is filled/,
    ],
  ])('are rejected: %s', (_, steps, message) => {
    expect(() => scheduled(steps).emit('wgsl')).toThrow(message)
  })

  test('have no type for other targets', () => {
    const k = scheduled(`${CARRIED}\n  tensorize sum.ir with more`)
    expect(() => k.emit('cuda')).toThrow(/memory tile has no type for cuda/)
  })
})

test('required device properties follow from the generated code', () => {
  const info = {
    subgroupMinSize: 32,
    subgroupMaxSize: 32,
    subgroupMatrixConfigs: [{ M: 16, N: 16, K: 16, componentType: 'f16', resultComponentType: 'f32' }],
  } as unknown as GPUAdapterInfo
  const features = new Set(['shader-f16', 'subgroups', 'chromium-experimental-subgroup-matrix'])
  const have = capabilities(features, info, 32)
  for (const name of [
    ...features,
    'f16',
    'chromium_experimental_subgroup_matrix',
    'lanes(32)',
    'lanes(2)',
    'subgroup_size(32)',
    'subgroup_matrix(16, 16, 16, f16, f32)',
  ])
    expect(have.has(name), name).toBe(true)
  expect(have.has('lanes(64)')).toBe(false)
  // Without the feature, or of any size, nothing of it is there.
  const less = capabilities(new Set(['subgroups']), { ...info, subgroupMaxSize: 64 } as GPUAdapterInfo, 4)
  expect([...less].filter((n) => n.includes('('))).toEqual(['lanes(2)', 'lanes(4)'])
})

describe('subgroup matrices', () => {
  test('every declared instruction is valid WGSL', async () => {
    const { instructions } = await load('kernels/instructions/subgroup-matrix.spt')
    const all = [...instructions.values()]
    for (const instr of all) {
      const [module] = instructionTest(instr, all).kernel.emit('wgsl')
      expect([instr.name, await wgslErrors(module!.text)]).toEqual([instr.name, []])
    }
  })

  test('a product', async () => {
    const kernel = (await load('kernels/gemm-f16.spt')).kernel('gemm<f16>').schedule('subgroup')
    const [m, n, k] = [64, 128, 32]
    const A = Array.from({ length: m * k }, (_, e) => (e % 7) - 3)
    const B = Array.from({ length: k * n }, (_, e) => (e % 5) - 2)
    const C = new Array<number>(m * n).fill(Number.NaN)
    interpret(
      kernel.compilation.loops,
      new Map(Object.entries({ A, B, C })),
      new Map(Object.entries({ m, n, k })),
    )
    const at = (i: number, j: number): number =>
      Array.from({ length: k }, (_, p) => A[i * k + p]! * B[p * n + j]!).reduce((x, y) => x + y)
    expect(C).toEqual(C.map((_, e) => at(Math.floor(e / n), e % n)))
    const [module] = kernel.emit('wgsl')
    const { text } = module!
    expect(await wgslErrors(text)).toEqual([])
    const file = new URL('gemm-subgroup.wgsl', import.meta.url)
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(file, text)
    expect(text).toBe(readFileSync(file, 'utf8'))
  })

  test('is rejected on devices without them', async () => {
    const device = await devices.webgpu()
    const kernel = (await load('kernels/gemm-f16.spt')).kernel('gemm<f16>').schedule('subgroup')
    if (!device.features.has('chromium_experimental_subgroup_matrix'))
      await expect(kernel.build(device)).rejects.toThrow(/device\/no-instruction/)
    await device.dispose()
  })
})
