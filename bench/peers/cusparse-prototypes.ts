/** cuSPARSE's calls as they are in C. */
export const PROTOTYPES = {
  cusparseCreate: 'void *',
  cusparseDestroy: 'uintptr_t',
  cusparseGetVersion: 'uintptr_t, void *',
  cusparseSetStream: 'uintptr_t, uintptr_t',
  cusparseCreateCsr:
    'void *, int64_t, int64_t, int64_t, uintptr_t, uintptr_t, uintptr_t, int32_t, int32_t, int32_t, int32_t',
  cusparseCreateBsr:
    'void *, int64_t, int64_t, int64_t, int64_t, int64_t, uintptr_t, uintptr_t, uintptr_t, int32_t, int32_t, int32_t, int32_t, int32_t',
  cusparseCreateBlockedEll:
    'void *, int64_t, int64_t, int64_t, int64_t, uintptr_t, uintptr_t, int32_t, int32_t, int32_t',
  cusparseCreateDnMat: 'void *, int64_t, int64_t, int64_t, uintptr_t, int32_t, int32_t',
  cusparseCreateDnVec: 'void *, int64_t, uintptr_t, int32_t',
  cusparseDestroySpMat: 'uintptr_t',
  cusparseDestroyDnMat: 'uintptr_t',
  cusparseDestroyDnVec: 'uintptr_t',
  cusparseSpMV_bufferSize:
    'uintptr_t, int32_t, void *, uintptr_t, uintptr_t, void *, uintptr_t, int32_t, int32_t, void *',
  cusparseSpMV_preprocess:
    'uintptr_t, int32_t, void *, uintptr_t, uintptr_t, void *, uintptr_t, int32_t, int32_t, uintptr_t',
  cusparseSpMV:
    'uintptr_t, int32_t, void *, uintptr_t, uintptr_t, void *, uintptr_t, int32_t, int32_t, uintptr_t',
  cusparseSpMM_bufferSize:
    'uintptr_t, int32_t, int32_t, void *, uintptr_t, uintptr_t, void *, uintptr_t, int32_t, int32_t, void *',
  cusparseSpMM_preprocess:
    'uintptr_t, int32_t, int32_t, void *, uintptr_t, uintptr_t, void *, uintptr_t, int32_t, int32_t, uintptr_t',
  cusparseSpMM:
    'uintptr_t, int32_t, int32_t, void *, uintptr_t, uintptr_t, void *, uintptr_t, int32_t, int32_t, uintptr_t',
  cusparseSDDMM_bufferSize:
    'uintptr_t, int32_t, int32_t, void *, uintptr_t, uintptr_t, void *, uintptr_t, int32_t, int32_t, void *',
  cusparseSDDMM_preprocess:
    'uintptr_t, int32_t, int32_t, void *, uintptr_t, uintptr_t, void *, uintptr_t, int32_t, int32_t, uintptr_t',
  cusparseSDDMM:
    'uintptr_t, int32_t, int32_t, void *, uintptr_t, uintptr_t, void *, uintptr_t, int32_t, int32_t, uintptr_t',
} as const
