"""What `ndt-ros2-bridge` and `ndt-ros1-bridge` are made of.

bridge: the threads: receiver (ROS to ndtd), publisher (ndtd to ROS), and status. transport: what they want of a ROS graph.
ROS 2, with the packages of the extra `dds`: rmw (names, types and QoS as ROS 2 gives them to DDS), dds (readers and writers),
autoware. ROS 1, with those of `ros1` and with rospy: rospy_graph. msgtypes: types of messages. to_ndtd, from_ndtd: messages.
mounting: tf_static. tf_buffer: odom -> base_link. link: the sockets of ndtd. hints: why nothing comes. options: options and log.
command: the command line.
"""
