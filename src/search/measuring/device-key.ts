import type { Device } from '../../runtime/device.ts'

/** Identifies a device among those of this host, across processes. */
export function deviceKey(
  device: Device,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  const { chip } = device as { readonly chip?: { readonly ordinal: number } }
  const ordinal = chip?.ordinal
  if (ordinal === undefined) return `${device.kind} ${device.name}`
  // CUDA_VISIBLE_DEVICES selects and orders the devices that a process sees.
  const visible = env.CUDA_VISIBLE_DEVICES?.split(',').map((s) => s.trim())
  return `${device.kind} ${device.name} ${visible?.[ordinal] || ordinal}`
}
