import { describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { initDriver, loadDriver, showVersion } from '../../src/runtime/cuda/driver.ts'
import type { CLibrary, Ffi } from '../../src/runtime/cuda/ffi.ts'
import { createCudaDevice, reportCuda } from '../../src/runtime/cuda/index.ts'
import {
  builtinsLibraries,
  driverCandidates,
  includeCandidates,
  includedHeaders,
  nvrtcCandidates,
  sitePackages,
} from '../../src/runtime/cuda/libraries.ts'
import { loadNvrtc, openNvrtc } from '../../src/runtime/cuda/nvrtc.ts'
import type { ModuleText } from '../../src/runtime/device.ts'
import { refusal } from '../support/refusal.ts'
import { FakeDriver, put } from './cuda-fake.ts'
import { fakeMachine } from './cuda-machine.ts'

const NOWHERE = { libcuda: '/nowhere/libcuda.so.1' }

describe('without CUDA', () => {
  test('the report says why and what to do', async () => {
    const report = await reportCuda(NOWHERE)
    expect(report).toMatchObject({ kind: 'cuda', available: false })
    expect(report.reason).toMatch(/libcuda\.so\.1 could not be loaded|supported on Linux only/)
    expect(report.hint).toBeTruthy()
  })

  test('opening the device is rejected with the same reason', async () => {
    const { reason } = await reportCuda(NOWHERE)
    const error = await createCudaDevice(NOWHERE).catch((e: unknown) => e)
    expect(error).toBeInstanceOf(SptError)
    expect((error as SptError).diagnostics[0]).toMatchObject({ code: 'device/absent', message: reason })
  })
})

describe('each missing part has its own reason', () => {
  const ffiWith = (symbols: Record<string, (...args: never[]) => number>): Ffi => ({
    version: '0',
    addressOf: () => 0n,
    readString: () => '',
    abandonCalls: () => {},
    load(path) {
      if (!path.startsWith('/ok')) throw new Error('no such file')
      return {
        path,
        bind(prototype) {
          const name = /(\w+)\(/.exec(prototype)![1]!
          return name in symbols ? (symbols[name] as never) : undefined
        },
      }
    },
  })

  test('a driver without the required calls', () => {
    const diagnostic = refusal(() => loadDriver(ffiWith({}), fakeMachine([]), '/ok/libcuda.so.1'))
    expect(diagnostic).toMatchObject({ code: 'device/absent' })
    expect(diagnostic.notes![0]).toContain('it has no cuInit')
  })

  test('a driver that does not start, or shows no device', () => {
    const stub = new FakeDriver()
    stub.failing.set('cuInit', 34)
    expect(refusal(() => initDriver(stub)).message).toContain('the stub that toolkits ship')
    const hidden = new FakeDriver()
    hidden.failing.set('cuInit', 100)
    const diagnostic = refusal(() => initDriver(hidden))
    expect(diagnostic.message).toContain('the driver sees no CUDA device')
    expect(diagnostic.hint).toContain('CUDA_VISIBLE_DEVICES')
    const none = new FakeDriver()
    none.calls.cuDeviceGetCount = (count) => put(count, 0)
    expect(refusal(() => initDriver(none)).message).toContain('shows no device')
    expect(initDriver(new FakeDriver())).toEqual({ devices: 1, version: 13000 })
    expect([showVersion(13000), showVersion(12090)]).toEqual(['13.0', '12.9'])
  })

  const nvrtcCalls = (major: number) => ({
    nvrtcVersion: (a: Int32Array, b: Int32Array) => put(a, major) + put(b, 1),
    nvrtcGetNumSupportedArchs: (n: Int32Array) => put(n, 2),
    nvrtcGetSupportedArchs: (list: Int32Array) => put(list, 80) + put(list.subarray(1), 90),
    ...Object.fromEntries(
      'CreateProgram CompileProgram GetProgramLogSize GetProgramLog GetCUBINSize GetCUBIN GetPTXSize GetPTX DestroyProgram'
        .split(' ')
        .map((n) => [`nvrtc${n}`, () => 0]),
    ),
  })

  test('NVRTC that is missing, too old or too new for the driver', () => {
    const load = (calls: Record<string, (...args: never[]) => number>, path: string, driver = 13000) =>
      loadNvrtc(ffiWith(calls), fakeMachine([]), driver, path)
    const missing = refusal(() => load({}, '/gone/libnvrtc.so'))
    expect(missing.message).toContain('NVRTC (libnvrtc.so)')
    expect(missing.notes).toEqual(['/gone/libnvrtc.so: no such file'])
    expect(refusal(() => load({}, '/ok/a')).notes![0]).toContain('NVRTC 11.2 or later is needed')
    expect(refusal(() => load(nvrtcCalls(13), '/ok/a', 12080)).notes![0]).toContain(
      "newer than the driver's CUDA 12",
    )
    expect(load(nvrtcCalls(12), '/ok/a')).toMatchObject({ major: 12, minor: 1, supported: [80, 90] })
  })

  test('a hanging NVRTC is abandoned, and the process may exit', async () => {
    const done: string[] = []
    const calls: Record<string, (...args: never[]) => number> = nvrtcCalls(12)
    const library: CLibrary = {
      path: 'libnvrtc.so',
      bind: (prototype) => {
        const name = /nvrtc\w+/.exec(prototype)![0]
        const call = (...args: unknown[]) => {
          if (name.includes('Program')) done.push(name)
          return calls[name]!(...(args as never[]))
        }
        return Object.assign(call, { async: () => {} })
      },
    }
    const nvrtc = openNvrtc(library, () => done.push('abandoned'), 0.01)
    const target = { arch: 'sm_90', output: 'cubin' } as const
    const module = { name: 'slow', text: 'int x;', target: 'cuda', kernels: [] } as unknown as ModuleText
    const error = await nvrtc.compile(module, target, []).catch((e: unknown) => e)
    const [late] = (error as SptError).diagnostics
    expect(late).toMatchObject({ code: 'device/compile', message: expect.stringContaining('within 0.01 s') })
    expect(done).toEqual(['nvrtcCreateProgram', 'abandoned'])
  })
})

describe('the search', () => {
  const VENV = '/env/lib/python3.12/site-packages/nvidia'

  test('for NVRTC: option, SPT_NVRTC, CUDA_HOME, wheels, the loader, toolkits; newest first', () => {
    const machine = fakeMachine(
      [
        '/env/bin/python3',
        `${VENV}/cu13/lib/libnvrtc.so.13`,
        `${VENV}/cu13/lib/libnvrtc-builtins.so.13.0`,
        `${VENV}/cuda_nvrtc/lib/libnvrtc.so.12`,
        '/home/cuda/lib64/libnvrtc.so',
        '/usr/local/cuda-9.2/lib64/libnvrtc.so.9.2',
        '/usr/local/cuda-12.8/lib64/libnvrtc.so.12',
      ],
      { PATH: '/bin:/env/bin', CUDA_HOME: '/home/cuda' },
    )
    expect(nvrtcCandidates(machine)).toEqual([
      '/home/cuda/lib64/libnvrtc.so',
      `${VENV}/cu13/lib/libnvrtc.so.13`,
      `${VENV}/cuda_nvrtc/lib/libnvrtc.so.12`,
      'libnvrtc.so',
      'libnvrtc.so.13',
      'libnvrtc.so.12',
      'libnvrtc.so.11.2',
      '/usr/local/cuda-12.8/lib64/libnvrtc.so.12',
      '/usr/local/cuda-9.2/lib64/libnvrtc.so.9.2',
    ])
    expect(nvrtcCandidates({ ...machine, env: { ...machine.env, SPT_NVRTC: '/e' } })).toEqual(['/e'])
    expect(nvrtcCandidates(machine, '/o')).toEqual(['/o'])
    expect(builtinsLibraries(machine, `${VENV}/cu13/lib/libnvrtc.so.13`)).toEqual([
      `${VENV}/cu13/lib/libnvrtc-builtins.so.13.0`,
    ])
    expect(builtinsLibraries(machine, 'libnvrtc.so')).toEqual([])
  })

  test('for Python: an active environment before the one on the path', () => {
    const machine = fakeMachine(
      [
        '/active/lib/python3.11/site-packages/x',
        '/env/bin/python3',
        '/env/lib/python3.9/site-packages/x',
        '/env/lib/python3.12/site-packages/x',
        '/site/x',
        '/other/lib/python3.12/site-packages/x',
      ],
      { VIRTUAL_ENV: '/active', PATH: '/other/bin:/env/bin', PYTHONPATH: '/site:relative' },
    )
    expect(sitePackages(machine)).toEqual([
      '/site',
      '/active/lib/python3.11/site-packages',
      '/env/lib/python3.12/site-packages',
      '/env/lib/python3.9/site-packages',
    ])
  })

  test('for the driver and the headers', () => {
    const machine = fakeMachine(['/usr/lib/wsl/lib/libcuda.so.1'])
    expect(driverCandidates(machine)).toEqual(['libcuda.so.1', '/usr/lib/wsl/lib/libcuda.so.1'])
    expect(driverCandidates({ ...machine, env: { SPT_LIBCUDA: '/e' } })).toEqual(['/e'])
    expect(includeCandidates(machine, '/cuda/lib64/libnvrtc.so')[0]).toBe('/cuda/include')
    expect(includedHeaders('#include <a.h>\n #  include "b/c.h"\n// #include\nint include;')).toEqual([
      'a.h',
      'b/c.h',
    ])
  })
})
