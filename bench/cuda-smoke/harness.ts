/** Checks that print PASS or FAIL, and what the rooms of the CUDA smoke test share. */
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { CudaDevice } from '../../src/runtime/cuda/index.ts'
import type { ArgValue, Command, DeviceBuffer, HostArray, ModuleText } from '../../src/runtime/device.ts'

export const counts = { passed: 0, failed: 0 }
export async function check(name: string, body: () => Promise<string | undefined>): Promise<void> {
  const start = performance.now()
  try {
    const note = await body()
    counts.passed++
    console.log(`PASS ${name}${note ? `: ${note}` : ''} (${(performance.now() - start).toFixed(0)} ms)`)
  } catch (error) {
    counts.failed++
    console.log(`FAIL ${name}: ${error instanceof Error ? (error.stack ?? error.message) : error}`)
  }
}

export function expect(condition: boolean, what: string): void {
  if (!condition) throw new Error(what)
}

export function equal(got: ArrayLike<number>, want: ArrayLike<number>): undefined {
  expect(got.length === want.length, `${got.length} elements, not ${want.length}`)
  for (let i = 0; i < want.length; i++) {
    if (!Object.is(got[i], want[i])) throw new Error(`element ${i} is ${got[i]}, not ${want[i]}`)
  }
}

/** The code and message of the error that must come. */
export async function refused(code: string, body: () => unknown): Promise<string> {
  try {
    await body()
  } catch (error) {
    if (!(error instanceof SptError)) throw error
    expect(error.code === code, `${error.message}, where ${code} was due`)
    return error.diagnostics[0]!.message
  }
  throw new Error(`${code} was due, and nothing was refused`)
}

export const F32 = async (device: CudaDevice, b: DeviceBuffer, n?: number) =>
  new Float32Array(await device.download(b, n === undefined ? undefined : 4 * n))
export const I32 = async (device: CudaDevice, b: DeviceBuffer) => new Int32Array(await device.download(b))
export const iota = (n: number): Float32Array => Float32Array.from({ length: n }, (_, i) => i % 4096)
export const median = (times: number[]): number => [...times].sort((a, b) => a - b)[times.length >> 1]!

export async function launcher(device: CudaDevice, text: ModuleText) {
  const module = await device.compile(text)
  return (grid: readonly [number, number, number], ...args: ArgValue[]): Command => ({
    kind: 'launch',
    module,
    entry: text.entries[0]!.name,
    grid,
    args,
  })
}

export async function put(device: CudaDevice, data: HostArray, label: string): Promise<DeviceBuffer> {
  const buffer = device.alloc(data.byteLength, label)
  await device.upload(buffer, data)
  return buffer
}
