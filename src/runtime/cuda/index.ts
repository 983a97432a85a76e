/** The CUDA device, through the driver API and NVRTC. Node only. */
import { readFileSync } from 'node:fs'
import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import { cacheFolder, openCache } from '../../cache/disk-cache.ts'
import type { DeviceReport } from '../device.ts'
import { canOverlap, chipFacts, readChip } from './chip.ts'
import { openCompiler } from './compiler.ts'
import type { CudaOptions } from './cuda-options.ts'
import { CudaDevice } from './device.ts'
import { type CudaDriver, initDriver, loadDriver, showVersion } from './driver.ts'
import { absentError, CudaCallError, driverError } from './errors.ts'
import { type Ffi, loadFfi } from './ffi.ts'
import { includeCandidates, type Machine, resolveHeaders, thisMachine } from './libraries.ts'
import { chooseTarget, loadNvrtc, type Nvrtc } from './nvrtc.ts'

export { CudaDevice } from './device.ts'

/**
 * Opens a CUDA device. Rejects with `device/absent`, with the reason and a remedy, if the driver, a device or NVRTC is
 * missing; `reportCuda` reports the same without rejecting.
 */
export async function createCudaDevice(options: CudaOptions = {}): Promise<CudaDevice> {
  const machine = thisMachine()
  const ordinal = options.ordinal ?? 0
  try {
    const { ffi, driver, driverVersion, devices, nvrtc } = await findTools(options, machine)
    checkOrdinal(ordinal, devices)
    const chip = readChip(driver, ordinal)
    const cache = openCache(cacheFolder(options.cacheDir, machine.env, machine.home), 'kernel')
    const compiler = openCompiler(nvrtc, chip, cache, machine, options.include)
    const syncEachLaunch = options.syncEachLaunch ?? machine.env.SPT_CUDA_SYNC === '1'
    const overlap =
      canOverlap(chip, driverVersion) && (options.overlap ?? machine.env.SPT_CUDA_OVERLAP !== '0')
    const versions = `CUDA ${showVersion(driverVersion)}${moduleVersion()}, NVRTC ${nvrtc.major}.${nvrtc.minor}`
    const libraries = { ffi, machine }
    return new CudaDevice({ driver, chip, compiler, versions, syncEachLaunch, overlap, libraries })
  } catch (error) {
    throw error instanceof CudaCallError ? driverError(error, `opening CUDA device ${ordinal}`) : error
  }
}

/** Version of NVIDIA's kernel module, which the driver's API does not report. */
function moduleVersion(): string {
  try {
    return ` (${readFileSync('/sys/module/nvidia/version', 'utf8').trim()})`
  } catch {
    return ''
  }
}

/** Libraries and devices, in the order in which they are located. */
interface CudaTools {
  readonly ffi: Ffi
  readonly driver: CudaDriver
  readonly driverVersion: number
  readonly devices: number
  readonly nvrtc: Nvrtc
}

/**
 * Locates the tools. `onFacts` receives the facts of each step, so that a report contains the steps before a failure.
 * @throws SptError `device/absent` with the reason
 */
async function findTools(
  options: CudaOptions,
  machine: Machine = thisMachine(),
  onFacts: (facts: Record<string, string>) => void = () => {},
): Promise<CudaTools> {
  if (process.platform !== 'linux') {
    throw absentError({
      message: `the CUDA device is supported on Linux only, not on ${process.platform}`,
      hint: 'use the webgpu or cpu device; on Windows, WSL 2 runs the CUDA device',
    })
  }
  const ffi = await loadFfi()
  onFacts({ koffi: ffi.version })
  const driver = loadDriver(ffi, machine, options.libcuda)
  onFacts({ driver: driver.path })
  const { devices, version } = initDriver(driver)
  onFacts({ 'driver CUDA': showVersion(version), devices: String(devices) })
  const nvrtc = loadNvrtc(ffi, machine, version, options.nvrtc)
  onFacts({ NVRTC: `${nvrtc.major}.${nvrtc.minor} (${nvrtc.path})` })
  return { ffi, driver, driverVersion: version, devices, nvrtc }
}

function checkOrdinal(ordinal: number, devices: number): void {
  if (Number.isInteger(ordinal) && ordinal >= 0 && ordinal < devices) return
  throw absentError({
    message: `there is no CUDA device ${ordinal}: the driver shows ${devices}`,
    expected: `a number from 0 to ${devices - 1}`,
    hint: 'CUDA_VISIBLE_DEVICES may hide devices',
  })
}

/** Reports the availability of CUDA. Never rejects: `reason` and `hint` describe a missing part. */
export async function reportCuda(
  options: CudaOptions = {},
  machine: Machine = thisMachine(),
): Promise<DeviceReport> {
  const facts: Record<string, string> = {}
  try {
    const tools = await findTools(options, machine, (newFacts) => Object.assign(facts, newFacts))
    const ordinal = options.ordinal ?? 0
    checkOrdinal(ordinal, tools.devices)
    const chip = readChip(tools.driver, ordinal)
    const target = chooseTarget(chip, tools.nvrtc)
    const folders = [...(options.include ?? []), ...includeCandidates(machine, tools.nvrtc.path)]
    const headers = resolveHeaders(machine, ['cuda_fp16.h'], folders)
    Object.assign(facts, chipFacts(chip), {
      'compiles for': target?.arch ?? 'nothing: NVRTC does not know this chip',
      headers: headers.include[0] ?? 'not found: kernels with f16 or bf16 cannot be compiled',
      cache: cacheFolder(options.cacheDir, machine.env, machine.home) ?? 'off',
    })
    return { kind: 'cuda', available: target !== undefined, name: chip.name, facts }
  } catch (error) {
    const translated = error instanceof CudaCallError ? driverError(error, 'looking for CUDA') : error
    const diagnostic = translated instanceof SptError ? translated.diagnostics[0] : undefined
    const reason = diagnostic?.message ?? (error instanceof Error ? error.message : String(error))
    for (const [i, note] of (diagnostic?.notes ?? []).entries()) facts[`tried ${i + 1}`] = note
    return {
      kind: 'cuda',
      available: false,
      reason,
      ...(diagnostic?.hint !== undefined && { hint: diagnostic.hint }),
      facts,
    }
  }
}
