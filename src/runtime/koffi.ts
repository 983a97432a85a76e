/**
 * The package that calls C libraries, loaded in one place: how large the stacks of its calls are is decided before the first
 * of them, whichever device makes it.
 */
export type Koffi = typeof import('koffi')['default']

/** NVRTC's compiler recurses deeply, and crashes the process on the 128 KiB that koffi gives its threads by default. */
const STACK_BYTES = 16 * 2 ** 20

/** Rejects with the loader's own error where koffi is not installed or has no build for this platform. */
export async function loadKoffi(): Promise<Koffi> {
  const koffi = (await import('koffi')).default
  try {
    koffi.config({ ...koffi.config(), sync_stack_size: STACK_BYTES, async_stack_size: STACK_BYTES })
  } catch {
    // Calls have been made already: by this package, or by another one (`hasDeepStacks`).
  }
  return koffi
}

/**
 * True if the stacks of koffi's calls are large enough for a compiler. They are not if another user of koffi made calls
 * first.
 */
export const hasDeepStacks = (koffi: Koffi): boolean => (koffi.config().async_stack_size ?? 0) >= STACK_BYTES
