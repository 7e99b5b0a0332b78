"""ROS 2 over DDS, without ROS: what `ndt-ros2-bridge` is made of. Needs the packages of the extra `dds`.

bridge: the threads: receiver (DDS to ndtd), publisher (ndtd to DDS), and status. rmw: names, types and QoS as ROS 2 gives them to DDS.
dds: readers and writers of serialised messages. to_ndtd, from_ndtd: messages. mounting: tf_static. tf_buffer: odom -> base_link.
link: the sockets of ndtd. hints: why nothing comes. options: options and log.
"""
