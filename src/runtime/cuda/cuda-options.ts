/** Options of `devices.cuda`. */
export interface CudaOptions {
  /** The device's number in the driver's order; 0. */
  readonly ordinal?: number
  /** Path of the driver's library; otherwise `SPT_LIBCUDA`, otherwise the system's. */
  readonly libcuda?: string
  /** Path of NVRTC; otherwise `SPT_NVRTC`, otherwise the result of the search. */
  readonly nvrtc?: string
  /** Include folders, searched before those found automatically. */
  readonly include?: readonly string[]
  /** Folder of compiled kernels, `false` for none; otherwise `SPT_CACHE_DIR`, otherwise the system's cache folder. */
  readonly cacheDir?: string | false
  /** Wait after each launch, so that a fault names its kernel; otherwise `SPT_CUDA_SYNC=1`. */
  readonly syncEachLaunch?: boolean
  /**
   * Allows a launch to begin before the previous launch of its run has finished (programmatic dependent launch, compute
   * capability 9.0 or higher; default: on). `SPT_CUDA_OVERLAP=0` disables it.
   */
  readonly overlap?: boolean
}
