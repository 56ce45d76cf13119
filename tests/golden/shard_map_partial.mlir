module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%arg0: tensor<8x8xf32>) -> (tensor<2x8xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x", ?}, {?}]>] out_shardings=[<@mesh, [{?}, {?}]>] manual_axes={"x"} (%arg1: tensor<2x8xf32>) {
      %1 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %6 = stablehlo.add %arg2, %arg3 : tensor<f32>
        stablehlo.return %6 : tensor<f32>
      }) : (tensor<2x8xf32>) -> tensor<2x8xf32>
      %2 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, []>] manual_axes={"y"} () {
        %6 = stablehlo.partition_id : tensor<ui32>
        %c = stablehlo.constant dense<2> : tensor<ui32>
        %7 = stablehlo.divide %6, %c : tensor<ui32>
        %c_0 = stablehlo.constant dense<4> : tensor<ui32>
        %8 = stablehlo.remainder %7, %c_0 : tensor<ui32>
        %9 = stablehlo.convert %8 : (tensor<ui32>) -> tensor<i32>
        sdy.return %9 : tensor<i32>
      } : () -> tensor<i32>
      %3 = stablehlo.convert %2 : (tensor<i32>) -> tensor<f32>
      %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
      %5 = stablehlo.add %1, %4 : tensor<2x8xf32>
      sdy.return %5 : tensor<2x8xf32>
    } : (tensor<8x8xf32>) -> tensor<2x8xf32>
    return %0 : tensor<2x8xf32>
  }
}
