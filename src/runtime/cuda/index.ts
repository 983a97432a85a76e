/** The CUDA device, through the driver API and NVRTC. Node only. */
import { readFileSync } from 'node:fs'
import { cacheFolder, openCache } from '../../cache/disk-cache.ts'
import { type CudaOptions, checkOrdinal, findTools } from './availability.ts'
import { canOverlap, readChip } from './chip.ts'
import { openCompiler } from './compiler.ts'
import { CudaDevice } from './device.ts'
import { showVersion } from './driver.ts'
import { CudaCallError, driverError } from './errors.ts'
import { thisMachine } from './libraries.ts'

export { type CudaOptions, reportCuda } from './availability.ts'
export type { Chip } from './chip.ts'
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
    return new CudaDevice({
      driver,
      chip,
      compiler,
      versions,
      syncEachLaunch,
      overlap,
      libraries: { ffi, machine },
    })
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
