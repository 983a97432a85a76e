/**
 * Prepares Linux for Dawn: loads a Vulkan loader into the process and selects a driver. On other systems Dawn uses the native
 * graphics interface, so this module does nothing.
 */
import { type Koffi, loadKoffi } from '../koffi.ts'
import { findSwiftShader, isMissing, type Missing } from './swiftshader.ts'

/** Description of the driver. */
export interface Vulkan {
  readonly driver: string
}

type Library = ReturnType<Koffi['load']>

async function findKoffi(): Promise<Koffi | Missing> {
  try {
    return await loadKoffi()
  } catch (e) {
    return {
      reason: `the npm package koffi, which loads libraries, cannot be loaded: ${reasonOf(e)}`,
      hint: 'npm install koffi',
    }
  }
}

const reasonOf = (e: unknown): string => (e instanceof Error ? e.message : String(e)).split('\n')[0] ?? ''

/**
 * Loads a Vulkan loader for Dawn and checks that it has a driver. Without a system loader (a container may lack only that), the
 * packaged loader is used. The check runs here because Dawn prints to stderr without a driver.
 */
export async function findVulkan(): Promise<Vulkan | Missing> {
  if (process.platform !== 'linux') return { driver: 'the system' }
  const koffi = await findKoffi()
  // Without koffi, Dawn itself looks for the system's loader.
  if ('reason' in koffi) return { driver: 'the system' }
  let loader: Library
  let driver = 'the system'
  try {
    loader = koffi.load('libvulkan.so.1', { global: true })
  } catch {
    const hint = 'install the GPU driver and libvulkan1'
    const packaged = findSwiftShader()
    if (isMissing(packaged)) return { reason: 'there is no Vulkan loader (libvulkan.so.1)', hint }
    try {
      loader = koffi.load(packaged.loader, { global: true })
    } catch (e) {
      return { reason: `the packaged Vulkan loader cannot be loaded: ${reasonOf(e)}`, hint }
    }
    driver = 'the system, through the packaged Vulkan loader'
  }
  if (countDevices(loader) > 0) return { driver }
  return { reason: 'Vulkan finds no driver: there is no GPU here', hint: 'install the GPU driver' }
}

/** `VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO`, and the size of the structure with 64-bit pointers. */
const INSTANCE_CREATE_INFO = { type: 1, bytes: 64 }

function countDevices(loader: Library): number {
  const createInstance = loader.func('int vkCreateInstance(const void *, const void *, _Out_ void *)')
  const enumerate = loader.func('int vkEnumeratePhysicalDevices(uint64_t, _Inout_ uint32_t *, void *)')
  const destroyInstance = loader.func('void vkDestroyInstance(uint64_t, const void *)')
  const info = Buffer.alloc(INSTANCE_CREATE_INFO.bytes)
  info.writeInt32LE(INSTANCE_CREATE_INFO.type, 0)
  const handle = Buffer.alloc(8)
  if (createInstance(info, null, handle) !== 0) return 0
  const instance = handle.readBigUInt64LE()
  const count = [0]
  const result = enumerate(instance, count, null) as number
  destroyInstance(instance, null)
  return result === 0 ? count[0]! : 0
}

const DRIVER_VARIABLES = ['VK_DRIVER_FILES', 'VK_ICD_FILENAMES']

/** Runs `request` while SwiftShader is the only Vulkan driver that the loader sees. */
export async function withSwiftShader<T>(request: (driver: string) => Promise<T>): Promise<T | Missing> {
  const packaged = findSwiftShader()
  if (isMissing(packaged)) return packaged
  const koffi = await findKoffi()
  if ('reason' in koffi) return koffi
  let restore: () => void
  try {
    koffi.load(packaged.loader, { global: true })
    restore = setDrivers(koffi.load(null), packaged.icd)
  } catch (e) {
    return {
      reason: `SwiftShader cannot be loaded: ${reasonOf(e)}`,
      hint: 'the packaged driver needs glibc; use the cpu device',
    }
  }
  try {
    return await request(`SwiftShader (software) of @sparticuz/chromium ${packaged.version}`)
  } finally {
    restore()
  }
}

/** Sets the environment of the C library (in a worker, `process.env` is a copy); returns a function that restores it. */
function setDrivers(libc: Library, icd: string): () => void {
  const getenv = libc.func('const char *getenv(const char *)')
  const setenv = libc.func('int setenv(const char *, const char *, int)')
  const unsetenv = libc.func('int unsetenv(const char *)')
  const saved = DRIVER_VARIABLES.map((name) => [name, getenv(name) as string | null] as const)
  for (const name of DRIVER_VARIABLES) setenv(name, icd, 1)
  return () => {
    for (const [name, value] of saved) value === null ? unsetenv(name) : setenv(name, value, 1)
  }
}
