import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { openCache } from '../../src/cache/disk-cache.ts'
import { DTYPES } from '../../src/ir/values/dtype.ts'
import { openCompiler } from '../../src/runtime/cuda/compiler.ts'
import type { Nvrtc } from '../../src/runtime/cuda/nvrtc.ts'
import { BASE_OPTIONS, chooseTarget, compileError, excerpt, parseLog } from '../../src/runtime/cuda/nvrtc.ts'
import { argumentBlock, packArguments } from '../../src/runtime/cuda/pack-arguments.ts'
import type { ArgSpec } from '../../src/runtime/device.ts'
import { checkArgs } from '../../src/runtime/device-checks.ts'
import { property } from '../support/property.ts'
import { buffer, fakeModule, scalar } from './cuda-fake.ts'
import { fakeMachine } from './cuda-machine.ts'

describe('arguments', () => {
  const specs = fc.array(fc.tuple(fc.constantFrom(...DTYPES), fc.integer({ min: 0, max: 1 }), fc.boolean()), {
    maxLength: 40,
  })
  property([specs])('each slot contains its argument, and each pointer points to its slot', (list) => {
    const base = 0x1000n
    let slots = new ArrayBuffer(0)
    const block = argumentBlock((b) => {
      slots = b
      return base
    })
    const args = list.map(([dtype, , isBuffer], i) =>
      isBuffer ? { ...buffer(`a${i}`), dtype } : scalar(`a${i}`, dtype),
    )
    const entry = fakeModule('k', args).entries[0]!
    const values = list.map(([, v, isBuffer], i) => (isBuffer ? { bytes: i, label: `${i}`, free() {} } : v))
    packArguments(block, entry, values, (b) => BigInt(b.bytes) + 2n ** 47n)
    for (const [i, [dtype, v, isBuffer]] of list.entries()) {
      expect(block.pointers[i]).toBe(base + BigInt(8 * i))
      const view = new DataView(slots, 8 * i, 8)
      if (isBuffer) expect(view.getBigUint64(0, true)).toBe(BigInt(i) + 2n ** 47n)
      else if (dtype === 'f64') expect(view.getFloat64(0, true)).toBe(v)
      else if (dtype === 'f32' || dtype === 'f16' || dtype === 'bf16') {
        expect(view.getFloat32(0, true)).toBe(v)
      } else expect(view.getInt32(0, true)).toBe(v)
    }
  })

  test('a scalar beyond its type is rejected', () => {
    const check = (dtype: ArgSpec['dtype'], value: number) =>
      checkArgs('k', fakeModule('k', [scalar('s', dtype)]).entries[0]!, [value], {})
    const bad = { i32: [2 ** 31, 0.5, NaN], u32: [-1, 2 ** 32], i8: [128], u8: [-1, 256], bool: [2] } as const
    for (const [dtype, values] of Object.entries(bad)) {
      for (const v of values) {
        expect(() => check(dtype as keyof typeof bad, v)).toThrow(SptError)
      }
    }
    const good = { i32: -(2 ** 31), u32: 2 ** 32 - 1, i8: -128, u8: 255, bool: 1, f32: NaN, f64: Infinity }
    for (const [dtype, v] of Object.entries(good)) {
      check(dtype as keyof typeof good, v)
    }
  })

  test('kinds and counts have to match', () => {
    const owner = {}
    const entry = fakeModule('k', [buffer('x'), scalar('n')]).entries[0]!
    const b = { bytes: 4, label: 'b', owner, free() {} }
    const given =
      (...args: (typeof b | number)[]) =>
      () =>
        checkArgs('k', entry, args, owner)
    expect(given(b)).toThrow('takes 2 arguments and got 1')
    expect(given(1, 1)).toThrow('the argument x is a buffer, not a scalar')
    expect(given(b, b)).toThrow('the argument n is a scalar, not a buffer')
    given(b, 1)()
  })
})

describe('compile log', () => {
  const log = [
    'm.cu(2): warning #177-D: variable "u" was declared but never referenced',
    '    int u;',
    'm.cu(3): error: identifier "foo" is undefined',
    '    a[i] = foo(n);',
    '           ^',
    'cuda_fp16.h(9): error: something there',
    "ptxas error   : Entry function 'k' uses too much shared data",
    'nvrtc: error: invalid value for --gpu-architecture (-arch)',
    '2 errors detected',
  ].join('\n')

  test('is parsed into locations', () => {
    expect(parseLog(log, 'm.cu')).toEqual([
      { severity: 'warning', line: 2, text: 'variable "u" was declared but never referenced' },
      { severity: 'error', line: 3, text: 'identifier "foo" is undefined' },
      { severity: 'error', text: 'cuda_fp16.h(9): something there' },
      { severity: 'error', text: "Entry function 'k' uses too much shared data" },
      { severity: 'error', text: 'invalid value for --gpu-architecture (-arch)' },
    ])
  })

  test('makes an error with the line it is about', () => {
    const module = { ...fakeModule('m', []), text: 'one\ntwo\n  a[i] = foo(n);\nfour\nfive\nsix' }
    const [diagnostic] = compileError(module, 'm.cu', log, 'compilation failed').diagnostics
    expect(diagnostic!.message).toBe(`CUDA module 'm': line 3: identifier "foo" is undefined (and 3 more)`)
    const { start, end } = diagnostic!.span!
    expect(module.text.slice(start, end)).toBe('  a[i] = foo(n);')
    expect(diagnostic!.notes![0]).toBe('  1 | one\n  2 | two\n> 3 |   a[i] = foo(n);\n  4 | four\n  5 | five')
    const plain = compileError(module, 'm.cu', '', 'internal error').diagnostics[0]!
    expect(plain.message).toBe("CUDA module 'm': internal error")
    expect(plain.span).toBeUndefined()
    expect(compileError(module, 'm.cu', 'm.cu(99): error: late', '').diagnostics[0]!.span!.end).toBe(
      module.text.length,
    )
  })

  property([fc.string(), fc.string()])('takes any text', (text, noise) => {
    parseLog(noise, text)
    excerpt(text, 1)
    compileError({ ...fakeModule('m', []), text }, 'm.cu', noise, 's')
  })
})

describe('compiling', () => {
  test('the target is the chip itself, its generation, or PTX below it', () => {
    const nvrtc = (major: number, ...supported: number[]) => ({ major, supported })
    const choose = (cc: number, n: ReturnType<typeof nvrtc>) =>
      chooseTarget({ major: Math.floor(cc / 10), minor: cc % 10 }, n)
    expect(choose(90, nvrtc(13, 80, 90, 100))).toEqual({ arch: 'sm_90a', output: 'cubin' })
    expect(choose(90, nvrtc(11, 80, 90))).toEqual({ arch: 'sm_90', output: 'cubin' })
    expect(choose(80, nvrtc(12, 75, 80))).toEqual({ arch: 'sm_80', output: 'cubin' })
    expect(choose(89, nvrtc(11, 80, 86))).toEqual({ arch: 'sm_86', output: 'cubin' })
    expect(choose(120, nvrtc(12, 80, 90))).toEqual({ arch: 'compute_90', output: 'ptx' })
    expect(choose(61, nvrtc(13, 75, 80))).toBeUndefined()
  })

  function compilerOver(files: readonly string[]) {
    const seen: (readonly string[])[] = []
    const nvrtc: Nvrtc = {
      path: '/cuda/lib64/libnvrtc.so.13',
      major: 13,
      minor: 0,
      supported: [90],
      compile: async (_m, _t, options) => Uint8Array.of(seen.push(options)),
    }
    const stored = new Map<string, Uint8Array>()
    const cache = {
      folder: '/cache',
      load: async (key: string) => stored.get(key),
      store: async (key: string, bytes: Uint8Array) => stored.set(key, bytes).has(key),
    }
    const chip = { name: 'chip', major: 9, minor: 0 }
    return { seen, stored, compiler: openCompiler(nvrtc, chip, cache, fakeMachine(files)) }
  }

  test('once per source; a changed source or name, or `fresh`, compiles again', async () => {
    const { compiler, seen, stored } = compilerOver([])
    const module = fakeModule('k', [])
    expect(await compiler.image(module)).toEqual({ bytes: Uint8Array.of(1), cached: false })
    expect(await compiler.image(module)).toEqual({ bytes: Uint8Array.of(1), cached: true })
    await compiler.image({ ...module, text: `${module.text} ` })
    expect((await compiler.image(module, true)).cached).toBe(false)
    expect((await compiler.image(module)).bytes).toEqual(Uint8Array.of(3))
    expect(seen[0]).toEqual([...BASE_OPTIONS])
    expect(stored.size).toBe(2)
  })

  test('headers are searched only if the source includes them', async () => {
    const text = '#include <cuda_fp16.h>\n  # include "cuda_bf16.h"\n'
    const found = compilerOver([
      '/cuda/include/cuda_fp16.h',
      '/cuda/include/cuda_bf16.h',
      '/cuda/include/cccl',
    ])
    await found.compiler.image({ ...fakeModule('k', []), text })
    expect(found.seen[0]!.slice(BASE_OPTIONS.length)).toEqual(['-I/cuda/include', '-I/cuda/include/cccl'])
    const missing = compilerOver(['/cuda/include/cuda_fp16.h'])
    await expect(missing.compiler.image({ ...fakeModule('k', []), text })).rejects.toThrow(
      "device/header-missing: CUDA module 'k' includes cuda_bf16.h, which is not installed",
    )
    await missing.compiler.image(fakeModule('k', []))
  })

  test('a chip that NVRTC no longer supports is rejected', () => {
    const nvrtc = { path: 'x', major: 13, minor: 0, supported: [75], compile: async () => Uint8Array.of() }
    const chip = { name: 'old', major: 6, minor: 1 }
    expect(() => openCompiler(nvrtc, chip, openCache(undefined, 'kernel'), fakeMachine([]))).toThrow(
      'device/absent',
    )
  })
})
