/**
 * Loads koffi, the package that calls C libraries. All devices load it here, because the stack size has to be set before the
 * first call.
 */
import { importOptional, type Missing } from '../ast/diagnostics/optional-packages.ts'

export type Koffi = typeof import('koffi')['default']

/** NVRTC's compiler recurses deeply, and crashes the process on the 128 KiB that koffi gives its threads by default. */
const STACK_BYTES = 16 * 2 ** 20

/**
 * Loads koffi, unless it is not installed or has no build for this platform.
 * @param purpose - See `importOptional`
 */
export async function loadKoffi(purpose: string): Promise<Koffi | Missing> {
  const koffi = await importOptional(purpose, 'koffi', async () => (await import('koffi')).default)
  if ('reason' in koffi) return koffi
  try {
    koffi.config({ ...koffi.config(), sync_stack_size: STACK_BYTES, async_stack_size: STACK_BYTES })
  } catch {
    // The stack size is fixed after the first call, which another package may have made (`hasDeepStacks`).
  }
  return koffi
}

/** True if the stacks of koffi's calls are large enough for a compiler. They are not if another user of koffi made calls first. */
export const hasDeepStacks = (koffi: Koffi): boolean => (koffi.config().async_stack_size ?? 0) >= STACK_BYTES
